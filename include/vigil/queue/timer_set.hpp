#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/schedule.hpp>

namespace vigil {

/// Values that fall due: ordered by (due, sequence), so equal dues keep their order; any of them can be removed or
/// moved by its handle. Pure: it is given the time and never calls a value.
///
/// Invariants: each value has exactly one entry in the schedule, and its slot knows where that is; a slot is either in
/// use or on the free list; a handle is never given out twice.
/// The cost is that of Schedule. About 30 bytes each beyond the value. add() and reschedule() leave the set as it was
/// if memory runs out. Movable. Free slots hold a T{} or one that was moved from, which should own nothing.
template <class T>
class TimerSet {
   public:
    enum class Handle : std::uint64_t {};  // 0 is never a handle

    /// The value that comes next; valid until the set is changed.
    struct Head {
        TimePoint due;
        std::uint64_t sequence;
        Handle handle;
        T& value;
    };

    TimerSet() noexcept = default;
    TimerSet(TimerSet&& other) noexcept { *this = std::move(other); }
    TimerSet& operator=(TimerSet&& other) noexcept {
        std::swap(schedule_, other.schedule_);
        std::swap(slots_, other.slots_);
        std::swap(first_free_, other.first_free_);
        std::swap(retired_, other.retired_);
        std::swap(next_sequence_, other.next_sequence_);
        return *this;
    }
    ~TimerSet() = default;

    [[nodiscard]] bool empty() const noexcept { return schedule_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return schedule_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return schedule_.bytes() + slots_.bytes(); }

    /// The sequence that the next add() or reschedule() will give: tells what was there before from what came later.
    [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_sequence_; }

    /// Not later than any due.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept { return schedule_.next_due(); }

    /// The earliest value if it is due at `now`. Putting things in order counts against `limit`, which is lowered; when
    /// it is used up the answer is nullopt too, and the next call goes on.
    [[nodiscard]] std::optional<Head> head(TimePoint now, std::size_t& limit) {
        const auto* first = schedule_.first(now, limit, Owner{slots_});
        if (first == nullptr) return std::nullopt;
        return Head{first->due, first->sequence, handle_of(first->slot), slots_[first->slot].value};
    }

    /// The earliest value, due or not; see Schedule::earliest().
    [[nodiscard]] std::optional<Head> earliest() {
        const auto first = schedule_.earliest(Owner{slots_});
        if (!first) return std::nullopt;
        return Head{first->due, first->sequence, handle_of(first->slot), slots_[first->slot].value};
    }

    /// After this the next `count` calls of add() cannot fail, whatever is removed in between.
    void reserve_more(std::size_t count) {
        slots_.reserve_more(count);
        schedule_.reserve_more(count);
    }

    /// The value is moved out only if this succeeds.
    Handle add(TimePoint now, TimePoint due, T&& value) {
        const Slot slot = acquire_slot();
        Record& record = slots_[slot];
        record.due = due;
        record.sequence = next_sequence_;
        try {
            schedule_.push(now, record.entry(slot), Owner{slots_});
        } catch (...) {
            free_slot(slot);
            throw;
        }
        ++next_sequence_;
        record.value = std::move(value);
        return handle_of(slot);
    }

    /// The value of a pending handle, or null.
    [[nodiscard]] T* find(Handle handle) noexcept {
        const auto slot = slot_of(handle);
        return slot ? &slots_[*slot].value : nullptr;
    }

    /// Gives the value back; nullopt if the handle is no longer pending.
    [[nodiscard]] std::optional<T> remove(Handle handle) noexcept {
        const auto slot = slot_of(handle);
        if (!slot) return std::nullopt;
        return remove_slot(*slot);
    }
    [[nodiscard]] T remove(const Head& head) noexcept { return remove_slot(static_cast<Slot>(head.handle)); }

    /// Makes the handle of a value stale until it is given back.
    void lend(const Head& head) noexcept { ++slots_[static_cast<Slot>(head.handle)].generation; }
    void give_back(const Head& head) noexcept { --slots_[static_cast<Slot>(head.handle)].generation; }

    /// Moves a pending value to a new due, behind those that are there already. False if it is no longer pending.
    bool reschedule(Handle handle, TimePoint now, TimePoint due) {
        const auto slot = slot_of(handle);
        if (!slot) return false;
        schedule_.reserve_more(1);
        Record& record = slots_[*slot];
        schedule_.remove(*slot, Owner{slots_});
        record.due = due;
        record.sequence = next_sequence_++;
        schedule_.push(now, record.entry(*slot), Owner{slots_});
        return true;
    }

    [[nodiscard]] bool check() const {
        if (!schedule_.check(Owner{slots_})) return false;
        std::size_t free = 0;
        for (Slot slot = first_free_; slot != no_slot; slot = slots_[slot].place) {
            if (++free > slots_.size()) return false;
        }
        return free + retired_ + schedule_.size() == slots_.size();
    }

   private:
    using Slot = Schedule::Slot;
    static constexpr Slot no_slot = ~Slot{0};

    // All that belongs to a value lies side by side, for Loop's timers in one cache line.
    struct Record {
        T value{};
        TimePoint due{};
        std::uint64_t sequence = 0;
        std::uint32_t generation = 1;
        std::uint32_t place = no_slot;  // in use: the place in the schedule; free: the next free slot

        [[nodiscard]] Schedule::Entry entry(Slot slot) const noexcept { return {due, sequence, slot}; }
    };
    using Records = PagedArray<Record>;

    template <class AnyRecords>
    struct Owner {
        AnyRecords& records;

        [[nodiscard]] Schedule::Entry entry(Slot slot) const noexcept { return records[slot].entry(slot); }
        [[nodiscard]] TimePoint armed(Slot slot) const noexcept { return records[slot].due; }
        void rearmed(Slot) const noexcept {}
        void moved(Slot slot, Schedule::Place place) const noexcept {
            records[slot].place = static_cast<std::uint32_t>(place);
        }
        [[nodiscard]] Schedule::Place place(Slot slot) const noexcept { return Schedule::Place{records[slot].place}; }
        void prefetch(Slot slot) const noexcept { vigil::prefetch(&records[slot]); }
    };
    template <class AnyRecords>
    Owner(AnyRecords&) -> Owner<AnyRecords>;

    Handle handle_of(Slot slot) const noexcept { return Handle{std::uint64_t{slots_[slot].generation} << 32 | slot}; }
    std::optional<Slot> slot_of(Handle handle) const noexcept {
        const auto slot = static_cast<Slot>(static_cast<std::uint64_t>(handle));
        if (slot >= slots_.size() || slots_[slot].generation == 0 || handle_of(slot) != handle) return std::nullopt;
        return slot;
    }

    T remove_slot(Slot slot) noexcept {
        Record& record = slots_[slot];
        schedule_.remove(slot, Owner{slots_});
        T value(std::move(record.value));
        free_slot(slot);
        return value;
    }

    Slot acquire_slot() {
        if (first_free_ != no_slot) return std::exchange(first_free_, slots_[first_free_].place);
        slots_.emplace_back();
        return static_cast<Slot>(slots_.size() - 1);
    }

    /// The new generation makes old handles stale; a slot whose generations are used up (0) is never used again.
    void free_slot(Slot slot) noexcept {
        if (++slots_[slot].generation == 0) {
            ++retired_;
        } else {
            slots_[slot].place = std::exchange(first_free_, slot);
        }
    }

    Schedule schedule_;
    Records slots_;
    Slot first_free_ = no_slot;
    std::size_t retired_ = 0;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace vigil
