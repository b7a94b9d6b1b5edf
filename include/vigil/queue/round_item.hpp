#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vigil/core/hash.hpp>
#include <vigil/core/time.hpp>

namespace vigil {

struct RoundQueueOptions {
    Delay dequeue_period = Duration::zero();  ///< from one handing out of an item to its next, at least
    Delay ttl = Delay::longest;               ///< from the creation of an item to its end; the longest is for ever
    std::uint64_t hash_seed = random_seed();  ///< a fixed one is for tests only
};

/// An item of a RoundQueue as a journal holds it.
template <class T>
struct RoundItem {
    std::string id;
    T value{};
    TimePoint created{};
    std::optional<TimePoint> last_taken = std::nullopt;  ///< none: it is new
    std::uint64_t times_taken = 0;
    std::uint64_t sequence = 0;  ///< of its last put or taking, among all of the queue; tells equal times apart
};

/// An item in a RoundQueue; valid until the queue is changed.
template <class T>
struct RoundView {
    std::string_view id;
    const T& value;
    TimePoint created;
    std::optional<TimePoint> last_taken;
    std::uint64_t times_taken;
    std::uint64_t sequence;
};

}  // namespace vigil
