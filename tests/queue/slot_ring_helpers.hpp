#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <limits>
#include <vector>
#include <vigil/core/time.hpp>
#include <vigil/queue/due_value.hpp>
#include <vigil/queue/slot_ring.hpp>
#include <vigil/queue/timed_queue.hpp>

/// What the tests of SlotRing share.
namespace vigil::testing::slot_ring {

using Ring = SlotRing<int>;
using Values = std::vector<int>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr auto take_all = [](const auto&) {};

inline void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// What fires when time goes on to `now`.
template <class AnyRing>
Values advance(AnyRing& ring, TimePoint now, std::size_t limit = unlimited) {
    Values fired;
    const Evicted evicted = ring.advance(now, limit, [&](const DueValue<int>& item) { fired.push_back(item.value); });
    expect(evicted.items == fired.size() && !evicted.refused, "what fires is counted");
    expect(ring.check(), "check()");
    return fired;
}

/// The first tick that is not before `due`.
inline TimePoint fires_at(TimePoint due, Duration tick) {
    const Duration over = due.time_since_epoch() % tick;
    return over > Duration::zero() ? saturating_add(due, tick - over) : due - over;
}

inline Values zero_to(int end) {
    Values values;
    for (int value = 0; value < end; ++value) values.push_back(value);
    return values;
}

/// Cancels enough that the ring must clear away what is cancelled: the next cancel() goes on with that.
inline void cancel_many(Ring& ring, TimePoint due) {
    std::vector<Ring::Handle> handles;
    for (int count = 0; count < 5000; ++count) handles.push_back(ring.put(due, -1));
    for (const auto handle : handles) ring.cancel(handle);
}

}  // namespace vigil::testing::slot_ring
