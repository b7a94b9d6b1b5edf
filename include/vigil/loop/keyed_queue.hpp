#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/bound.hpp>
#include <vigil/queue/priority_hash_queue.hpp>

namespace vigil::loop {

/// A PriorityHashQueue on a loop: push a key with a delay, push it again and it is updated; when its time has come, the
/// sink gets the item.
///
///     vigil::loop::KeyedQueue saves(loop, [](const vigil::KeyedItem& item) { save(item.key, item.data.front()); });
///     saves.push("document-7", text, 500ms);
class KeyedQueue : public Bound<PriorityHashQueue> {
   public:
    /// `sink(const KeyedItem&)` may return nothing, or whether it takes the item; see TimedQueue and Driver.
    template <class Sink>
    KeyedQueue(Loop& loop, Sink sink) : Bound(loop, PriorityHashQueue(), std::move(sink)) {}

    /// See PriorityHashQueue::set_defaults().
    void set_defaults(const PushOptions& options) { queue_.set_defaults(options); }

    PriorityHashQueue::Pushed push(std::string_view key, std::string_view data, Delay delay,
                                   const PushOptions& options = default_push) {
        const TimePoint at = start();
        const auto pushed = queue_.push(at, key, data, saturating_add(at, delay.value()), options);
        changed();
        return pushed;
    }
    /// Many at once, with their dues by the loop's clock; see PriorityHashQueue::push().
    std::size_t push(std::span<const Push> pushes) {
        const std::size_t pushed = queue_.push(start(), pushes);
        changed();
        return pushed;
    }

    bool cancel(std::string_view key) {
        const bool cancelled = queue_.cancel(key);
        changed();
        return cancelled;
    }
    bool reschedule(std::string_view key, Delay delay) {
        const TimePoint at = start();
        const bool found = queue_.reschedule(at, key, saturating_add(at, delay.value()));
        changed();
        return found;
    }
    [[nodiscard]] std::optional<KeyedItem> find(std::string_view key) const noexcept { return queue_.find(key); }
};

}  // namespace vigil::loop
