#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>
#include <vigil/core/time.hpp>

namespace vigil {

/// What a call of evict_due() did.
struct Evicted {
    std::size_t items = 0;  ///< handed over
    bool refused = false;   ///< the sink refused an item, which stays and will be the first one again
    bool more = false;      ///< the limit was reached: there may be more to do at the same time
};

/// Hands an item to a sink. False if it refuses: then the item has not changed. A sink that returns nothing takes all.
template <class Sink, class Item>
[[nodiscard]] bool offer_to(Sink& sink, Item&& item) {
    if constexpr (std::is_void_v<decltype(sink(std::forward<Item>(item)))>) {
        sink(std::forward<Item>(item));
        return true;
    } else {
        return sink(std::forward<Item>(item));
    }
}

namespace detail {
struct AnySink {
    template <class Item>
    bool operator()(Item&&) const;
};
}  // namespace detail

/// Something that hands out what is due. All that a driver knows of a queue:
///     next_due()                      when there may be something to do: early perhaps, late never; nullopt if empty
///     evict_due(now, limit, sink)     hands what is due at `now` to the sink, in order of (due, sequence), and stops
///                                     after about `limit` items, counting those that it only had to put in order
///     check()                         whether its invariants hold
/// A sink is called as sink(item) and returns whether it takes the item; if not, evict_due() ends and the item stays. A
/// sink that throws has not taken it. A sink may change the queue that calls it in any way but one: evict_due() inside
/// of evict_due() does nothing.
template <class Queue>
concept TimedQueue = requires(Queue& queue, const Queue& constant, TimePoint now, std::size_t limit) {
    { constant.next_due() } -> std::same_as<std::optional<TimePoint>>;
    { queue.evict_due(now, limit, detail::AnySink{}) } -> std::same_as<Evicted>;
    { constant.check() } -> std::same_as<bool>;
};

}  // namespace vigil
