#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/due_value.hpp>
#include <vigil/queue/free_slots.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/sorted_runs.hpp>
#include <vigil/queue/tick_lists.hpp>
#include <vigil/queue/timed_queue.hpp>

namespace vigil {

struct SlotRingOptions {
    Duration tick = std::chrono::seconds{1};  ///< how long the ring stays at a slot; at least 1 ms
    std::size_t slots = 3600;                 ///< at least 1
};

/// Delayed values in a ring of slots, one slot for each tick: cheap to put, cheap to cancel, by the million. A
/// TimedQueue.
///
/// Ticks lie at the multiples of their length. A value fires at the first tick that is not before its due: never early,
/// less than a tick late; in order of (due, sequence). Its slot is found by
///
///     tick number = due / tick, rounded up        slot = tick number % slots        turn = tick number / slots
///
/// and TickLists keeps the number of the value there if that is less than one turn ahead. Those of later turns wait in
/// groups of neighbouring slots and cost nothing until theirs comes, when the group moves into the ring. The ring goes
/// from one occupied slot to the next, over any number of ticks at once; an empty one has nothing to do. What the slot
/// that it has reached holds is put in order by a min-heap.
///
/// cancel() touches only the value; its number stays in the list of its slot, is passed over there, and not used again
/// before that. Once these are more than the values, each cancel() also clears away some of them.
///
/// Invariants: the number of each value, and each that was cancelled, is once in the list of its slot, in that of its
/// group, or in the heap, and not free; all others are free; a handle is never given out twice. put and cancel O(1),
/// but O(log n) in the number of groups for a value of a later turn; advance O(1) for each value, O(log n) in the
/// number of those that share its slot. About 30 bytes each beyond the value. put() leaves the ring as it was if memory
/// runs out; advance() loses nothing then. Move-only; T must be movable without exceptions. Free places hold a T{} or
/// one that was moved from, which should own nothing.
template <class T, class Observer = NoObserver>
class SlotRing {
   public:
    enum class Handle : std::uint64_t {};  // 0 is never a handle

    /// Throws std::invalid_argument for a tick of less than 1 ms, and for no slots.
    explicit SlotRing(SlotRingOptions options = {}, Observer observer = {})
        : tick_(checked(options).tick.count()),
          last_tick_(TimePoint::max().time_since_epoch().count() / tick_),
          lists_(options.slots),
          observer_(std::move(observer)) {}
    /// `other` can only be destroyed or assigned to after that.
    SlotRing(SlotRing&& other) noexcept = default;
    SlotRing& operator=(SlotRing&& other) noexcept = default;
    ~SlotRing() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t bytes() const noexcept { return records_.bytes() + lists_.bytes() + open_.bytes(); }
    /// Those in lists and heap, with the cancelled ones that are still there.
    [[nodiscard]] std::size_t entries() const noexcept { return lists_.size() + open_.size(); }

    [[nodiscard]] Duration tick() const noexcept { return Duration{tick_}; }
    [[nodiscard]] std::size_t slots() const noexcept { return lists_.slots(); }
    /// The slot that a value due then belongs to.
    [[nodiscard]] std::size_t slot_of(TimePoint due) const noexcept { return lists_.slot_of(tick_at_or_after(due)); }

    /// The value is moved out only if this succeeds.
    Handle put(TimePoint due, T&& value) {
        const Number number = insert(due, std::move(value));
        observer_.changed(number, DueValue<T>{due, records_[number].value}, Change::added);
        return handle_of(number);
    }
    Handle put(TimePoint due, const T& value) { return put(due, T(value)); }
    /// A negative delay counts as none.
    Handle put_after(TimePoint now, Delay delay, T&& value) {
        if (entries() == 0) lists_.move_on_to(tick_at_or_before(now));
        return put(saturating_add(now, delay.value()), std::move(value));
    }
    Handle put_after(TimePoint now, Delay delay, const T& value) { return put_after(now, delay, T(value)); }
    /// As put(), without telling the observer.
    Handle restore(TimePoint due, T value) { return handle_of(insert(due, std::move(value))); }

    /// Gives the value back; nullopt if it has fired or was cancelled.
    std::optional<T> cancel(Handle handle) noexcept {
        const Number number = number_of(handle);
        if (number == no_number) return std::nullopt;
        std::optional<T> value(std::move(records_[number].value));
        give_up(number);
        sweep();
        return value;
    }

    /// The value of a handle, or null.
    [[nodiscard]] T* find(Handle handle) noexcept {
        const Number number = number_of(handle);
        return number == no_number ? nullptr : &records_[number].value;
    }

    /// The tick at which there may be something to fire; never late. Early if what was to fire then is cancelled and
    /// has not been cleared away, and if a group begins there: its first value may come up to slots / 64 - 1 ticks
    /// later. That is so until advance() has moved the group into the ring: once all of it is less than a turn ahead
    /// and nothing is left to fire, or when it reaches that tick.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept {
        if (empty()) return std::nullopt;
        const Tick tick = lists_.next_tick();
        return time_of(open_.empty() ? tick : std::min(tick, tick_at_or_after(open_.top().due)));
    }

    /// Moves on to `now` and hands what fires to `sink(const DueValue<T>&)`: see TimedQueue.
    template <class Sink>
    Evicted advance(TimePoint now, std::size_t limit, Sink&& sink) {
        Evicted evicted;
        if (std::exchange(advancing_, true)) return evicted;
        const Done done{advancing_};
        const Tick until = now == TimePoint::max() ? tick_at_or_after(now) : tick_at_or_before(now);
        while (limit > 0) {
            if (lists_.at_group()) {
                pull(limit);
            } else if (lists_.at_slot()) {
                open(limit);
            } else if (!open_.empty()) {
                if (tick_at_or_after(open_.top().due) > until) return evicted;
                --limit;
                if (!fire(sink, evicted)) return evicted;
            } else if (const Tick tick = lists_.next_tick(); tick <= until) {
                lists_.move_on_to(tick);
            } else {
                lists_.move_on_to(until);
                if (!lists_.group_fits()) return evicted;
                pull(limit);
            }
        }
        evicted.more = true;
        return evicted;
    }
    template <class Sink>
    Evicted evict_due(TimePoint now, std::size_t limit, Sink&& sink) {
        return advance(now, limit, sink);
    }

    [[nodiscard]] Observer& observer() noexcept { return observer_; }

    [[nodiscard]] bool check() const {
        if (!lists_.check() || !open_.check()) return false;
        std::vector<bool> found(records_.size());
        bool known = true;
        const auto find = [&](Number number, bool right) {
            known = known && right && !found[number];
            found[number] = true;
        };
        lists_.each([&](Number number, Ticks ticks) { find(number, lies_in(number, ticks)); });
        open_.each([&](const Entry& entry) {
            const std::uint64_t sequence = records_[entry.number].sequence;
            find(entry.number, sequence == 0 || sequence == entry.sequence);
        });
        std::size_t live = 0;
        for (std::size_t number = 0; number < records_.size(); ++number) {
            if (records_[number].sequence == 0) continue;
            ++live;
            if (!found[number]) return false;
        }
        return known && live == size_ && entries() + free_.size() + retired_ == records_.size() &&
               free_.check([&](Number number) { return records_[number].link; },
                           [&](Number number) { return records_[number].sequence == 0 && !found[number]; });
    }

   private:
    using Tick = TickLists::Tick;
    using Ticks = TickLists::Ticks;
    using Number = TickLists::Number;
    using Batch = TickLists::Batch;
    static constexpr Number no_number = FreeSlots::none;

    // How many numbers of cancelled values may lie about before they are cleared away.
    static constexpr std::size_t stale_allowed = 4096;

    struct Record {
        T value{};
        TimePoint due{};
        std::uint64_t sequence = 0;  // 0: free or cancelled
        std::uint32_t generation = 1;
        Number link = no_number;  // of a free one
    };

    struct Entry {
        TimePoint due;
        std::uint64_t sequence;
        Number number;

        bool operator<(const Entry& other) const noexcept {
            return due != other.due ? due < other.due : sequence < other.sequence;
        }
    };

    struct Done {
        bool& flag;
        ~Done() { flag = false; }
    };

    static const SlotRingOptions& checked(const SlotRingOptions& options) {
        if (options.tick < std::chrono::milliseconds{1})
            throw std::invalid_argument("SlotRing: a tick is at least 1 ms");
        if (options.slots == 0) throw std::invalid_argument("SlotRing: there must be a slot");
        return options;
    }

    [[nodiscard]] Tick tick_at_or_before(TimePoint time) const noexcept {
        const std::int64_t count = time.time_since_epoch().count();
        return count / tick_ - (count % tick_ < 0);
    }
    [[nodiscard]] Tick tick_at_or_after(TimePoint time) const noexcept {
        const std::int64_t count = time.time_since_epoch().count();
        return count / tick_ + (count % tick_ > 0);
    }
    [[nodiscard]] TimePoint time_of(Tick tick) const noexcept {
        return tick > last_tick_ ? TimePoint::max() : TimePoint{Duration{tick * tick_}};
    }

    /// Whether a value is due at one of these ticks, or was.
    [[nodiscard]] bool lies_in(Number number, Ticks ticks) const noexcept {
        const Record& record = records_[number];
        return record.due > time_of(ticks.first - 1) && record.due <= time_of(ticks.last);
    }

    [[nodiscard]] Handle handle_of(Number number) const noexcept {
        return Handle{std::uint64_t{records_[number].generation} << 32 | number};
    }
    [[nodiscard]] Number number_of(Handle handle) const noexcept {
        const auto number = static_cast<Number>(static_cast<std::uint64_t>(handle));
        if (number >= records_.size() || handle_of(number) != handle) return no_number;
        return records_[number].sequence != 0 ? number : no_number;
    }

    Number insert(TimePoint due, T&& value) {
        const Number number = acquire();
        try {
            place(number, due, next_sequence_);
        } catch (...) {
            free_.push(number, records_[number].link);
            throw;
        }
        Record& record = records_[number];
        record.value = std::move(value);
        record.due = due;
        record.sequence = next_sequence_++;
        ++size_;
        return number;
    }

    void place(Number number, TimePoint due, std::uint64_t sequence) {
        const Tick tick = tick_at_or_after(due);
        if (tick <= lists_.current()) {
            open_.push({due, sequence, number});
        } else {
            lists_.add(tick, number);
        }
    }

    Number acquire() {
        if (free_.empty()) {
            records_.emplace_back();
            return static_cast<Number>(records_.size() - 1);
        }
        const auto [number, coming] = free_.pop([&](Number free) { return records_[free].link; });
        if (coming != no_number) prefetch(&records_[coming]);
        return number;
    }
    /// The value has gone; the new generation makes its handle stale.
    void give_up(Number number) noexcept {
        records_[number].sequence = 0;
        ++records_[number].generation;
        --size_;
        observer_.removed(number);
    }
    /// A number that has just been taken out of its list or the heap: if its value has gone, it can be used again, but
    /// not if its generations are used up.
    [[nodiscard]] bool recycled(Number number) noexcept {
        Record& record = records_[number];
        if (record.sequence != 0) return false;
        if (record.generation == 0) {
            ++retired_;
        } else {
            free_.push(number, record.link);
        }
        return true;
    }

    /// Moves some of the first group into the ring.
    void pull(std::size_t& limit) {
        const Batch batch = fetched(lists_.batch_of_group());
        lists_.reserve_more(batch.count);
        open_.reserve_more(batch.count);
        lists_.take_from_group();
        for (const Number number : batch) {
            if (!recycled(number)) place(number, records_[number].due, records_[number].sequence);
        }
        limit -= std::min<std::size_t>(limit, batch.count);
    }

    /// Moves some of the slot that the ring has reached into the heap.
    void open(std::size_t& limit) {
        const Batch batch = fetched(lists_.batch_of_slot());
        open_.reserve_more(batch.count);
        lists_.take_from_slot();
        for (const Number number : batch) {
            if (!recycled(number)) open_.gather({records_[number].due, records_[number].sequence, number});
        }
        if (!lists_.at_slot()) open_.close();
        limit -= std::min<std::size_t>(limit, batch.count);
    }
    /// While the records of a batch are used, those of the next one are fetched.
    [[nodiscard]] const Batch& fetched(const Batch& batch) const noexcept {
        const auto fetch = [&](const Batch& numbers) {
            for (const Number number : numbers) {
                prefetch(&records_[number]);
                prefetch(&records_[number].link);  // it may lie in two cache lines
            }
        };
        fetch(batch);
        if (const Batch* coming = lists_.coming_after(batch)) fetch(*coming);
        return batch;
    }

    /// Hands the first of the heap to the sink, or drops it if it was cancelled. False if the sink refuses.
    template <class Sink>
    bool fire(Sink& sink, Evicted& evicted) {
        const Entry entry = open_.top();
        Record& record = records_[entry.number];
        if (record.sequence == 0) {
            open_.pop();
            return recycled(entry.number);
        }
        // Its handle is stale while the sink has it. The sink may put others before it.
        struct Leaving {
            Record& record;
            explicit Leaving(Record& leaving) noexcept : record(leaving) { ++record.generation; }
            ~Leaving() { --record.generation; }
        };
        {
            const Leaving leaving(record);
            evicted.refused = !offer_to(sink, DueValue<T>{record.due, record.value});
        }
        if (evicted.refused) return false;
        ++evicted.items;
        // Destroyed last: that may change the ring too.
        [[maybe_unused]] const T taken = std::exchange(record.value, T{});
        give_up(entry.number);
        if (open_.top().sequence == entry.sequence) {
            open_.pop();
            (void)recycled(entry.number);
        }
        sweep();
        return true;
    }

    /// Clears away some of what was cancelled, if that is more than what is there: more of it than comes with one
    /// cancel(), so that it gets less. When sinks refuse, it may pile up in the heap behind what they refuse.
    void sweep() noexcept {
        const auto too_many = [&] { return entries() - size_ > size_ + stale_allowed; };
        if (!too_many()) return;
        if (open_.size() > size_ + stale_allowed / 2) {
            open_.sweep([&](const Entry& entry) { return !recycled(entry.number); });
            return;
        }
        const auto wanted = [&](Number number) { return !recycled(number); };
        for (int steps = 0; steps < 4 && too_many(); ++steps) lists_.filter_next(wanted);
    }

    std::int64_t tick_;
    Tick last_tick_;
    TickLists lists_;         // of what fires after its current tick, and of what is left in the slot of that
    SortedRuns<Entry> open_;  // what fires up to then
    PagedArray<Record> records_;
    FreeSlots free_;
    std::size_t retired_ = 0;
    std::size_t size_ = 0;
    std::uint64_t next_sequence_ = 1;
    bool advancing_ = false;

    [[no_unique_address]] Observer observer_;
};

}  // namespace vigil
