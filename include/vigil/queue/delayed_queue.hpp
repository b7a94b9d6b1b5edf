#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/due_value.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/timed_queue.hpp>
#include <vigil/queue/timer_set.hpp>

namespace vigil {

struct DelayedQueueOptions {
    std::size_t batch = 100;  ///< how many values move in one go, before others have their turn; at least 1
};

/// Values that wait for their delay and then move, in batches, to a destination: Redisson's RDelayedQueue in one
/// process. The destination is the sink of evict_due(). One that is full refuses; then what is due goes on waiting, in
/// order. A TimedQueue.
///
/// Order is (due, sequence), exactly. The cost is that of TimerSet: O(1) for what is due within months, 30 bytes each
/// beyond the value. offer() leaves the queue as it was if memory runs out; evict_due() loses nothing then. Move-only;
/// T must be default constructible and movable without exceptions.
template <class T, class Observer = NoObserver>
class DelayedQueue {
   public:
    using Handle = typename TimerSet<T>::Handle;  ///< never given out twice; Handle{} is none

    explicit DelayedQueue(DelayedQueueOptions options = {}, Observer observer = {})
        : batch_(std::max<std::size_t>(options.batch, 1)), observer_(std::move(observer)) {}

    [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
    [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return values_.bytes(); }

    /// A negative delay counts as none. The value is moved out only if this succeeds.
    Handle offer(TimePoint now, T&& value, Delay delay) {
        const TimePoint due = saturating_add(now, delay.value());
        const Handle handle = values_.add(now, due, std::move(value));
        observer_.changed(slot_of(handle), DueValue<T>{due, *values_.find(handle)}, Change::added);
        return handle;
    }
    Handle offer(TimePoint now, const T& value, Delay delay) { return offer(now, T(value), delay); }
    /// Puts a value back as an observer saw it, without telling the observer.
    Handle restore(TimePoint now, TimePoint due, T value) { return values_.add(now, due, std::move(value)); }

    /// Gives the value back; nullopt if it has moved or was removed.
    std::optional<T> remove(Handle handle) noexcept {
        auto removed = values_.remove(handle);
        if (removed) observer_.removed(slot_of(handle));
        return removed;
    }

    /// The value that will move next; valid until the queue is changed.
    [[nodiscard]] std::optional<DueValue<T>> peek() {
        const auto head = values_.earliest();
        if (!head) return std::nullopt;
        return DueValue<T>{head->due, head->value};
    }

    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept { return values_.next_due(); }

    /// Hands a batch of what is due to `sink(const DueValue<T>&)`: see TimedQueue.
    template <class Sink>
    Evicted evict_due(TimePoint now, std::size_t limit, Sink&& sink) {
        Evicted evicted;
        if (std::exchange(evicting_, true)) return evicted;
        struct Done {
            bool& evicting;
            ~Done() { evicting = false; }
        } const done{evicting_};

        limit = std::min(limit, batch_);
        while (limit > 0) {
            const auto head = values_.head(now, limit);
            if (!head) break;
            if (!hand_over(*head, sink)) {
                evicted.refused = true;
                return evicted;
            }
            ++evicted.items;
            if (limit > 0) --limit;
        }
        evicted.more = limit == 0;
        return evicted;
    }

    [[nodiscard]] Observer& observer() noexcept { return observer_; }
    [[nodiscard]] bool check() const { return values_.check(); }

   private:
    using Values = TimerSet<T>;

    static std::uint32_t slot_of(Handle handle) noexcept { return static_cast<std::uint32_t>(handle); }

    template <class Sink>
    bool hand_over(const typename Values::Head& head, Sink& sink) {
        struct Lent {
            Values& values;
            const typename Values::Head& head;
            Lent(Values& of, const typename Values::Head& lent) noexcept : values(of), head(lent) { values.lend(head); }
            ~Lent() { values.give_back(head); }
        };
        {
            const Lent lent(values_, head);
            if (!offer_to(sink, DueValue<T>{head.due, head.value})) return false;
        }
        [[maybe_unused]] const T taken = values_.remove(head);  // destroyed last: that may change the queue too
        observer_.removed(slot_of(head.handle));
        return true;
    }

    Values values_;
    std::size_t batch_;
    bool evicting_ = false;
    [[no_unique_address]] Observer observer_;
};

}  // namespace vigil
