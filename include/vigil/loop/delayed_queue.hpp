#pragma once

#include <optional>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/bound.hpp>
#include <vigil/queue/delayed_queue.hpp>

namespace vigil::loop {

/// A DelayedQueue on a loop: offer a value with a delay; then it moves to the destination, in batches.
template <class T>
class DelayedQueue : public Bound<vigil::DelayedQueue<T>> {
    using Base = Bound<vigil::DelayedQueue<T>>;

   public:
    using Handle = typename vigil::DelayedQueue<T>::Handle;

    /// The destination is a sink, `sink(const DueValue<T>&)`: see TimedQueue and Driver, and into().
    template <class Sink>
    DelayedQueue(Loop& loop, Sink destination, DelayedQueueOptions options = {})
        : Base(loop, vigil::DelayedQueue<T>(options), std::move(destination)) {}

    Handle offer(const T& value, Delay delay) { return offer(T(value), delay); }
    Handle offer(T&& value, Delay delay) {
        const Handle handle = Base::queue_.offer(Base::start(), std::move(value), delay);
        Base::changed();
        return handle;
    }
    std::optional<T> remove(Handle handle) {
        auto value = Base::queue_.remove(handle);
        if (Base::empty()) Base::changed();
        return value;
    }
    [[nodiscard]] std::optional<DueValue<T>> peek() { return Base::queue_.peek(); }
};

}  // namespace vigil::loop
