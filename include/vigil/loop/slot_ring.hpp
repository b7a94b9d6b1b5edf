#pragma once

#include <optional>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/bound.hpp>
#include <vigil/queue/slot_ring.hpp>

namespace vigil::loop {

/// A SlotRing on a loop: put a value with a delay; at the first tick after it the sink gets it. For time-outs by the
/// million of which most are cancelled, and whose time need not be exact to less than a tick.
template <class T>
class SlotRing : public Bound<vigil::SlotRing<T>> {
    using Base = Bound<vigil::SlotRing<T>>;

   public:
    using Handle = typename vigil::SlotRing<T>::Handle;

    /// `sink(const DueValue<T>&)` may return nothing, or whether it takes the value; see TimedQueue and Driver.
    template <class Sink>
    SlotRing(Loop& loop, SlotRingOptions options, Sink sink)
        : Base(loop, vigil::SlotRing<T>(options), std::move(sink)) {}

    Handle put(const T& value, Delay delay) { return put(T(value), delay); }
    Handle put(T&& value, Delay delay) {
        const Handle handle = Base::queue_.put_after(Base::start(), delay, std::move(value));
        Base::changed();
        return handle;
    }
    std::optional<T> cancel(Handle handle) {
        auto value = Base::queue_.cancel(handle);
        if (Base::empty()) Base::changed();
        return value;
    }
    [[nodiscard]] T* find(Handle handle) noexcept { return Base::queue_.find(handle); }
};

}  // namespace vigil::loop
