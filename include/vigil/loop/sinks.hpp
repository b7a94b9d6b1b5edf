#pragma once

#include <cstddef>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/delayed_queue.hpp>
#include <vigil/loop/keyed_queue.hpp>
#include <vigil/loop/slot_ring.hpp>

/// Sinks other than a callback of your own: what is due moves on to another queue or into a container.
namespace vigil::loop {

/// Into a container with push_back(); refuses while it holds `capacity` values. Who takes some out calls resume() of
/// the queue that this is the sink of.
template <class Container>
auto into(Container& container, std::size_t capacity) {
    return [&container, capacity](const auto& due) {
        if (container.size() >= capacity) return false;
        container.push_back(std::move(due.value));
        return true;
    };
}

/// Into a ring or a delayed queue, to wait there for `delay`.
template <class T>
auto into(SlotRing<T>& ring, Delay delay) {
    return [&ring, delay](const DueValue<T>& due) { ring.put(std::move(due.value), delay); };
}
template <class T>
auto into(DelayedQueue<T>& queue, Delay delay) {
    return [&queue, delay](const DueValue<T>& due) { queue.offer(std::move(due.value), delay); };
}

/// From one keyed queue into another: key, type and all fragments, which follow those that the key has there. If memory
/// runs out among several fragments, the item stays with all of them, and some are in both.
inline auto into(KeyedQueue& queue, Delay delay) {
    return [&queue, delay](const KeyedItem& item) {
        for (const auto fragment : item.data) {
            queue.push(item.key, fragment, delay, {.type = item.type, .mode = DataMode::append});
        }
    };
}

}  // namespace vigil::loop
