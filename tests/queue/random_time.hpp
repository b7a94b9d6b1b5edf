#pragma once

#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vigil/core/time.hpp>
#include <vigil/queue/parking_ring.hpp>

#include "random.hpp"

/// Dues and steps of time for the randomized tests of what falls due.
namespace vigil::testing {

/// Past, now, near, far, at the edges of buckets and of time, and often the same as others.
inline TimePoint random_due(Random& random, TimePoint now) {
    using namespace std::chrono_literals;
    const TimePoint extremes[] = {TimePoint::min(), TimePoint{}, TimePoint::max() - 1us, TimePoint::max()};
    if (random.one_in(100)) return extremes[random.below(4)];
    const auto within = [&](Duration most) { return saturating_add(now, Duration{random.below(most.count())}); };
    const TimePoint dues[] = {
        now,
        now > TimePoint::min() + 1min ? now - Duration{random.below(60'000'000)} : now,
        TimePoint{Duration{now.time_since_epoch().count() & ~std::int64_t{0xfffff}}},  // the same for many, just past
        TimePoint{Duration{now.time_since_epoch().count() | 0xfffff}},                 // and soon to come
        MillisecondRing::start_of(MillisecondRing::bucket_of(within(18s))),            // where a bucket begins
        within(3ms),
        within(17s),
        within(17s),
        within(10h),
        within(std::chrono::years{100}),
    };
    return dues[random.below(std::size(dues))];
}

/// On by a little, rarely by a lot, or exactly to the next due.
inline TimePoint random_step_from(Random& random, TimePoint now, std::optional<TimePoint> next_due) {
    using namespace std::chrono_literals;
    if (random.one_in(4) && next_due && *next_due > now && *next_due < saturating_add(now, 1min)) return *next_due;
    const Duration most = random.one_in(5000) ? Duration{std::chrono::years{1}} : random.one_in(300) ? 20s : 2ms;
    return saturating_add(now, Duration{random.below(most.count())});
}

}  // namespace vigil::testing
