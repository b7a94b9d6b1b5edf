#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/due_value.hpp>
#include <vigil/queue/free_slots.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/occupancy.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/slot_lists.hpp>
#include <vigil/queue/sorted_runs.hpp>
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
/// less than a tick late; in order of (due, sequence). Value and slot are found by
///
///     tick number = due / tick, rounded up        slot = tick number % slots        turn = tick number / slots
///
/// and the ring holds only values of less than one turn ahead. Those of later turns wait in groups of neighbouring
/// slots and cost nothing until theirs comes, when the group moves into the ring. The ring goes from one occupied slot
/// to the next, over any number of ticks at once; an empty one has nothing to do. What the slot that it has reached
/// holds is put in order by a min-heap.
///
/// cancel() touches only the value; its number stays in the list of its slot and is passed over there. Once these are
/// more than the values, each cancel() also clears away some of them.
///
/// Invariants: each value's number is in the list of its slot, in that of its group, or in the heap; a slot is marked
/// as occupied if its list is not empty; a handle is never given out twice. put and cancel O(1), but O(log n) in the
/// number of groups for a value of a later turn; advance O(1) for each value, O(log n) in the number of those that
/// share its slot. About 30 bytes each beyond the value. put() leaves the ring as it was if memory runs out; advance()
/// loses nothing then. Move-only; T must be movable without exceptions. Free places hold a T{} or one that was moved
/// from, which should own nothing.
template <class T, class Observer = NoObserver>
class SlotRing {
   public:
    enum class Handle : std::uint64_t {};  // 0 is never a handle

    /// Throws std::invalid_argument for a tick of less than 1 ms, and for no slots.
    explicit SlotRing(SlotRingOptions options = {}, Observer observer = {})
        : tick_(options.tick.count()),
          slots_(static_cast<std::int64_t>(options.slots)),
          last_tick_(TimePoint::max().time_since_epoch().count() / std::max<std::int64_t>(tick_, 1)),
          lists_of_slots_(options.slots),
          occupied_(std::max<std::size_t>(options.slots, 1)),
          observer_(std::move(observer)) {
        if (options.tick < std::chrono::milliseconds{1})
            throw std::invalid_argument("SlotRing: a tick is at least 1 ms");
        if (options.slots == 0) throw std::invalid_argument("SlotRing: there must be a slot");
    }
    SlotRing(SlotRing&&) noexcept = default;
    SlotRing& operator=(SlotRing&&) noexcept = default;
    ~SlotRing() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return records_.bytes() + lists_.bytes() + open_.bytes() + lists_of_slots_.capacity() * sizeof(List) +
               groups_.size() * (sizeof(typename Groups::value_type) + 4 * sizeof(void*));
    }
    /// Those in lists and heap, with the cancelled ones that are still there.
    [[nodiscard]] std::size_t entries() const noexcept { return entries_; }

    [[nodiscard]] Duration tick() const noexcept { return Duration{tick_}; }
    [[nodiscard]] std::size_t slots() const noexcept { return lists_of_slots_.size(); }
    /// The slot that a value due then belongs to.
    [[nodiscard]] std::size_t slot_of(TimePoint due) const noexcept {
        const std::int64_t tick = tick_at_or_after(due);
        return static_cast<std::size_t>(tick - floor_divide(tick, slots_) * slots_);
    }

    Handle put(TimePoint due, T value) {
        const Number number = insert(due, std::move(value));
        observer_.changed(number, DueValue<T>{due, records_[number].value}, Change::added);
        return handle_of(number);
    }
    /// A negative delay counts as none.
    Handle put_after(TimePoint now, Delay delay, T value) {
        if (entries_ == 0) move_on_to(tick_at_or_before(now));
        return put(saturating_add(now, delay.value()), std::move(value));
    }
    /// As put(), without telling the observer.
    Handle restore(TimePoint due, T value) { return handle_of(insert(due, std::move(value))); }

    /// Gives the value back; nullopt if it has fired or was cancelled.
    std::optional<T> cancel(Handle handle) noexcept {
        const Number number = number_of(handle);
        if (number == no_number) return std::nullopt;
        std::optional<T> value(std::move(records_[number].value));
        release(number);
        sweep();
        return value;
    }

    /// The value of a handle, or null.
    [[nodiscard]] T* find(Handle handle) noexcept {
        const Number number = number_of(handle);
        return number == no_number ? nullptr : &records_[number].value;
    }

    /// The tick at which there may be something to fire: early if something was cancelled, late never.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept {
        if (empty()) return std::nullopt;
        const std::int64_t tick = next_tick();
        return time_of(open_.empty() ? tick : std::min(tick, tick_at_or_after(open_.top().due)));
    }

    /// Moves on to `now` and hands what fires to `sink(const DueValue<T>&)`: see TimedQueue.
    template <class Sink>
    Evicted advance(TimePoint now, std::size_t limit, Sink&& sink) {
        Evicted evicted;
        if (std::exchange(advancing_, true)) return evicted;
        const Done done{advancing_};
        const std::int64_t until = now == TimePoint::max() ? tick_at_or_after(now) : tick_at_or_before(now);
        while (limit > 0) {
            if (!groups_.empty() && groups_.begin()->first * group_size() <= current_) {
                pull(limit);
            } else if (List& list = list_at(current_); !list.empty()) {
                open(list, limit);
            } else if (!open_.empty()) {
                if (tick_at_or_after(open_.top().due) > until) return evicted;
                --limit;
                if (!fire(sink, evicted)) return evicted;
            } else if (const std::int64_t tick = next_tick(); tick <= until) {
                move_on_to(tick);
            } else {
                move_on_to(until);
                if (groups_.empty() || !fits(groups_.begin()->first)) return evicted;
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
        std::vector<bool> found(records_.size());
        std::size_t counted = 0, chunks = 0;
        const auto look_at = [&](const List& list, std::int64_t first, std::int64_t last) {
            lists_.each(list, [&](Number number) {
                ++counted;
                if (lies_in(number, first, last)) found[number] = true;
            });
            return lists_.check(list, chunks);
        };
        for (std::int64_t tick = current_; tick < current_ + slots_; ++tick) {
            if (!look_at(list_at(tick), tick, tick)) return false;
            if (occupied_.test(index_of(tick)) == list_at(tick).empty()) return false;
        }
        for (const auto& [group, list] : groups_) {
            if (list.empty() || !look_at(list, group * group_size(), (group + 1) * group_size() - 1)) return false;
        }
        open_.each([&](const Entry& entry) {
            ++counted;
            if (records_[entry.number].sequence == entry.sequence) found[entry.number] = true;
        });
        std::size_t live = 0;
        for (std::size_t number = 0; number < records_.size(); ++number) {
            if (records_[number].sequence == 0) continue;
            ++live;
            if (!found[number]) return false;
        }
        return live == size_ && counted == entries_ && lists_.check_count(chunks) && open_.check() &&
               live + free_.size() + retired_ == records_.size() &&
               free_.check([&](Number number) { return records_[number].link; },
                           [&](Number number) { return records_[number].sequence == 0; });
    }

   private:
    using Number = SlotLists::Number;
    using List = SlotLists::List;
    using Groups = std::map<std::int64_t, List>;
    static constexpr Number no_number = FreeSlots::none;
    static constexpr std::int64_t no_tick = std::numeric_limits<std::int64_t>::max();

    // How many numbers of cancelled values may lie about before they are cleared away.
    static constexpr std::size_t stale_allowed = 4096;

    struct Record {
        T value{};
        TimePoint due{};
        std::uint64_t sequence = 0;  // 0: free
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

    /// Groups are a fraction of a turn, so that one fits into the ring long before it is due.
    [[nodiscard]] std::int64_t group_size() const noexcept { return std::max<std::int64_t>(slots_ / 64, 1); }
    [[nodiscard]] bool fits(std::int64_t group) const noexcept {
        return (group + 1) * group_size() - 1 - current_ < slots_;
    }

    static std::int64_t floor_divide(std::int64_t number, std::int64_t by) noexcept {
        return number / by - (number % by < 0);
    }
    [[nodiscard]] std::int64_t tick_at_or_before(TimePoint time) const noexcept {
        return floor_divide(time.time_since_epoch().count(), tick_);
    }
    [[nodiscard]] std::int64_t tick_at_or_after(TimePoint time) const noexcept {
        const std::int64_t count = time.time_since_epoch().count();
        return count / tick_ + (count % tick_ > 0);
    }
    [[nodiscard]] TimePoint time_of(std::int64_t tick) const noexcept {
        return tick > last_tick_ ? TimePoint::max() : TimePoint{Duration{tick * tick_}};
    }
    /// Of a tick less than a turn ahead.
    [[nodiscard]] std::size_t index_of(std::int64_t tick) const noexcept {
        const std::int64_t index = current_index_ + (tick - current_);
        return static_cast<std::size_t>(index < slots_ ? index : index - slots_);
    }
    void move_on_to(std::int64_t tick) noexcept {
        if (tick <= current_) return;
        current_ = tick;
        current_index_ = tick % slots_;
    }
    [[nodiscard]] List& list_at(std::int64_t tick) noexcept { return lists_of_slots_[index_of(tick)]; }
    [[nodiscard]] const List& list_at(std::int64_t tick) const noexcept { return lists_of_slots_[index_of(tick)]; }

    /// Whether a value is still there, and due at one of these ticks.
    [[nodiscard]] bool lies_in(Number number, std::int64_t first, std::int64_t last) const noexcept {
        const Record& record = records_[number];
        return record.sequence != 0 && record.due > time_of(first - 1) && record.due <= time_of(last);
    }

    /// The first tick of this turn, from `tick` on, at which a slot is occupied; or no_tick.
    [[nodiscard]] std::int64_t occupied_from(std::int64_t tick) const noexcept {
        if (tick - current_ >= slots_) return no_tick;
        const std::size_t here = index_of(tick);
        std::size_t next = occupied_.first_from(here);
        if (next == Occupancy::none) next = occupied_.first_from(0);
        if (next == Occupancy::none) return no_tick;
        const auto distance = static_cast<std::int64_t>(next) - static_cast<std::int64_t>(here);
        const std::int64_t found = tick + (distance < 0 ? distance + slots_ : distance);
        return found - current_ < slots_ ? found : no_tick;
    }
    /// The first tick at which a slot is occupied or a group begins; or no_tick.
    [[nodiscard]] std::int64_t next_tick() const noexcept {
        const std::int64_t group = groups_.empty() ? no_tick : groups_.begin()->first * group_size();
        return std::min(group, occupied_from(current_));
    }

    [[nodiscard]] Handle handle_of(Number number) const noexcept {
        return Handle{std::uint64_t{records_[number].generation} << 32 | number};
    }
    [[nodiscard]] Number number_of(Handle handle) const noexcept {
        const auto number = static_cast<Number>(static_cast<std::uint64_t>(handle));
        return number < records_.size() && handle_of(number) == handle && records_[number].sequence != 0 ? number
                                                                                                         : no_number;
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
        ++entries_;
        ++size_;
        return number;
    }

    void place(Number number, TimePoint due, std::uint64_t sequence) {
        const std::int64_t tick = tick_at_or_after(due);
        if (tick <= current_) {
            open_.push({due, sequence, number});
        } else if (tick - current_ < slots_) {
            const std::size_t index = index_of(tick);
            lists_.add(lists_of_slots_[index], number);
            occupied_.set(index);
        } else {
            lists_.reserve_more(1);
            lists_.add(groups_[floor_divide(tick, group_size())], number);
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
    /// The new generation makes the handle stale; a record whose generations are used up is never used again.
    void release(Number number) noexcept {
        Record& record = records_[number];
        record.sequence = 0;
        --size_;
        if (++record.generation == 0) {
            ++retired_;
        } else {
            free_.push(number, record.link);
        }
        observer_.removed(number);
    }

    /// Moves some of the first group into the ring.
    void pull(std::size_t& limit) {
        const auto [group, list] = *groups_.begin();
        const SlotLists::Chunk batch = fetch_first(list);
        lists_.reserve_more(batch.count);
        open_.reserve_more(batch.count);
        take(groups_.begin()->second);
        for (const Number number : batch) {
            if (lies_in(number, group * group_size(), (group + 1) * group_size() - 1)) {
                place(number, records_[number].due, records_[number].sequence);
            } else {
                --entries_;
            }
        }
        if (groups_.begin()->second.empty()) groups_.erase(groups_.begin());
        limit -= std::min<std::size_t>(limit, batch.count);
    }

    /// Moves some of the slot that the ring has reached into the heap.
    void open(List& list, std::size_t& limit) {
        const SlotLists::Chunk batch = fetch_first(list);
        open_.reserve_more(batch.count);
        take(list);
        if (list.empty()) occupied_.reset(index_of(current_));
        for (const Number number : batch) {
            if (lies_in(number, current_, current_)) {
                open_.gather({records_[number].due, records_[number].sequence, number});
            } else {
                --entries_;
            }
        }
        if (list.empty()) open_.close();
        limit -= std::min<std::size_t>(limit, batch.count);
    }
    /// The first chunk of a list. While its records are used, those of the next one are fetched.
    [[nodiscard]] SlotLists::Chunk fetch_first(const List& list) noexcept {
        const auto fetch = [&](const SlotLists::Chunk& chunk) {
            for (const Number number : chunk) {
                prefetch(&records_[number]);
                prefetch(&records_[number].link);  // it may lie in two cache lines
            }
        };
        const SlotLists::Chunk& first = lists_.first_of(list);
        fetch(first);
        if (const auto* coming = lists_.coming_after(first)) fetch(*coming);
        return first;
    }
    void take(List& list) noexcept {
        if (sweep_.walk && sweep_.walk->is_in(list)) sweep_.walk.reset();
        lists_.take(list);
    }

    /// Hands the first of the heap to the sink, or drops it if it was cancelled. False if the sink refuses.
    template <class Sink>
    bool fire(Sink& sink, Evicted& evicted) {
        const Entry entry = open_.top();
        Record& record = records_[entry.number];
        if (record.sequence == entry.sequence) {
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
            [[maybe_unused]] const T taken =
                std::exchange(record.value, T{});  // destroyed last: that may change the ring too
            release(entry.number);
            if (open_.top().sequence == entry.sequence) drop_first();
            sweep();
            return true;
        }
        drop_first();
        return true;
    }

    void drop_first() noexcept {
        open_.pop();
        --entries_;
    }

    /// Clears away some of what was cancelled, if that is more than what is there: more of it than comes with one
    /// cancel(), so that it gets less.
    void sweep() noexcept {
        for (int steps = 0; steps < 4 && entries_ - size_ > size_ + stale_allowed; ++steps) {
            if (!sweep_.walk && !sweep_next_list()) return sweep_opened();
            std::size_t dropped = 0;
            const bool more = lists_.filter_next(
                *sweep_.walk, dropped, [&](Number number) { return lies_in(number, sweep_.first, sweep_.last); });
            entries_ -= dropped;
            if (!more || forget_swept_list_if_empty()) sweep_.walk.reset();
        }
    }
    /// When sinks refuse, cancelled ones may pile up behind what they refuse.
    void sweep_opened() noexcept {
        const std::size_t before = open_.size();
        if (before <= size_ + stale_allowed / 2) return;
        try {
            open_.keep([&](const Entry& entry) { return records_[entry.number].sequence == entry.sequence; });
        } catch (const std::bad_alloc&) {  // then they go when their turn comes
        }
        entries_ -= before - open_.size();
    }
    bool forget_swept_list_if_empty() noexcept {
        if (sweep_.in_groups) {
            const auto group = groups_.find(floor_divide(sweep_.first, group_size()));
            if (!group->second.empty()) return false;
            groups_.erase(group);
            return true;
        }
        if (!list_at(sweep_.first).empty()) return false;
        occupied_.reset(index_of(sweep_.first));
        return true;
    }
    /// First the lists of the slots, then those of the groups. False after the last one.
    bool sweep_next_list() noexcept {
        if (!sweep_.in_groups) {
            const std::int64_t tick = occupied_from(std::max(sweep_.last, current_) + 1);
            if (tick != no_tick) {
                sweep_.first = sweep_.last = tick;
                sweep_.walk.emplace(list_at(tick));
                return true;
            }
            sweep_.in_groups = true;
            sweep_.last = current_;
        }
        const auto group = groups_.upper_bound(floor_divide(sweep_.last, group_size()));
        if (group == groups_.end()) {
            sweep_ = {};
            return false;
        }
        sweep_.first = group->first * group_size();
        sweep_.last = sweep_.first + group_size() - 1;
        sweep_.walk.emplace(group->second);
        return true;
    }

    struct Sweep {
        std::optional<SlotLists::Walk> walk;
        bool in_groups = false;
        std::int64_t first = 0, last = std::numeric_limits<std::int64_t>::min();  // the ticks of that list
    };

    std::int64_t tick_;
    std::int64_t slots_;
    std::int64_t last_tick_;
    SlotLists lists_;
    std::vector<List> lists_of_slots_;
    Occupancy occupied_;
    Groups groups_;
    SortedRuns<Entry> open_;
    std::int64_t current_ = 0;  // the tick that the ring has reached: what fires up to it has been put in order
    std::int64_t current_index_ = 0;
    Sweep sweep_;

    PagedArray<Record> records_;
    FreeSlots free_;
    std::size_t retired_ = 0;
    std::size_t size_ = 0;
    std::size_t entries_ = 0;
    std::uint64_t next_sequence_ = 1;
    bool advancing_ = false;

    [[no_unique_address]] Observer observer_;
};

}  // namespace vigil
