#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/schedule.hpp>

namespace vigil {

/// Values that fall due: ordered by (due, sequence), so equal dues keep their order; any of them can be removed or
/// moved by its handle. Pure: it is given the time and never calls a value.
///
/// Invariants: each value has exactly one entry in the schedule, and its slot knows where that is; a slot is either in
/// use or on the free list; a handle is never given out twice.
/// The cost is that of Schedule. About 40 bytes each beyond the value. add() leaves the set as it was if memory runs
/// out. Movable; T{} must be cheap, and free slots hold one.
template <class T>
class TimerSet {
   public:
    enum class Handle : std::uint64_t {};  // 0 is never a handle

    struct Head {
        Handle handle;
        TimePoint due;
        std::uint64_t sequence;
    };

    [[nodiscard]] bool empty() const noexcept { return schedule_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return schedule_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return schedule_.bytes() + slots_.bytes() + places_.bytes(); }

    /// The sequence that the next add() or reschedule() will give: tells what was there before from what came later.
    [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_sequence_; }

    /// Not later than any due.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept { return schedule_.next_due(); }

    /// As Schedule::settle(): head() is the earliest of what is due at `now` once this has returned true.
    bool settle(TimePoint now, std::size_t& limit) { return schedule_.settle(now, limit, tracker()); }

    [[nodiscard]] std::optional<Head> head() const noexcept {
        const auto* first = schedule_.first();
        if (first == nullptr) return std::nullopt;
        return Head{handle_of(first->slot), first->due, first->sequence};
    }

    Handle add(TimePoint now, TimePoint due, T&& value) {
        const Slot slot = acquire_slot();
        try {
            schedule_.push(now, {due, next_sequence_, slot}, tracker());
        } catch (...) {
            free_slot(slot);
            throw;
        }
        ++next_sequence_;
        slots_[slot].value = std::move(value);
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
        schedule_.remove(Schedule::Place{places_[*slot]}, tracker());
        std::optional<T> value(std::move(slots_[*slot].value));
        slots_[*slot].value = T{};
        free_slot(*slot);
        return value;
    }

    /// Moves a pending value to a new due, behind those that are there already. False if it is no longer pending.
    bool reschedule(Handle handle, TimePoint now, TimePoint due) {
        const auto slot = slot_of(handle);
        if (!slot) return false;
        schedule_.remove(Schedule::Place{places_[*slot]}, tracker());
        schedule_.push(now, {due, next_sequence_++, *slot}, tracker());
        return true;
    }

    [[nodiscard]] bool check() const {
        if (!schedule_.check() || places_.size() != slots_.size()) return false;
        std::size_t free = 0;
        for (Slot slot = first_free_; slot != no_slot; slot = places_[slot]) {
            if (++free > slots_.size()) return false;
        }
        return free + retired_ + schedule_.size() == slots_.size();
    }

   private:
    using Slot = Schedule::Slot;
    static constexpr Slot no_slot = ~Slot{0};

    struct Record {
        T value{};
        std::uint32_t generation = 1;
    };

    auto tracker() noexcept {
        return [this](Slot slot, Schedule::Place place) noexcept { places_[slot] = static_cast<std::uint32_t>(place); };
    }

    Handle handle_of(Slot slot) const noexcept {
        return Handle{std::uint64_t{slots_[slot].generation} << 32 | slot};
    }
    std::optional<Slot> slot_of(Handle handle) const noexcept {
        const auto slot = static_cast<Slot>(static_cast<std::uint64_t>(handle));
        if (slot >= slots_.size() || slots_[slot].generation == 0 || handle_of(slot) != handle) return std::nullopt;
        return slot;
    }

    Slot acquire_slot() {
        if (first_free_ != no_slot) return std::exchange(first_free_, places_[first_free_]);
        places_.reserve_one();
        slots_.push_back({});
        places_.push_back(no_slot);
        return static_cast<Slot>(slots_.size() - 1);
    }

    /// The new generation makes old handles stale; a slot whose generations are used up (0) is never used again.
    void free_slot(Slot slot) noexcept {
        if (++slots_[slot].generation == 0) {
            ++retired_;
        } else {
            places_[slot] = std::exchange(first_free_, slot);
        }
    }

    Schedule schedule_;
    PagedArray<Record> slots_;
    PagedArray<std::uint32_t> places_;  // in use: the place in the schedule; free: the next free slot
    Slot first_free_ = no_slot;
    std::size_t retired_ = 0;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace vigil
