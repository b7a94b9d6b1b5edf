#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace vigil {

/// The neighbours of a slot in a SlotList.
struct SlotLinks {
    std::uint32_t previous = ~std::uint32_t{0};
    std::uint32_t next = ~std::uint32_t{0};
};

/// A doubly linked list of the slots of an array of records; `Links` is the member of a record that holds its links.
/// The array belongs to the owner of the list, who passes it to every call.
///
/// Invariants: following the links from the first slot forwards, or from the last one backwards, gives the same slots.
/// All calls but sort() are O(1). Nothing allocates, nothing throws. Movable.
template <auto Links>
class SlotList {
   public:
    using Slot = std::uint32_t;
    static constexpr Slot no_slot = ~Slot{0};

    SlotList() noexcept = default;
    SlotList(SlotList&& other) noexcept { *this = std::move(other); }
    SlotList& operator=(SlotList&& other) noexcept {
        std::swap(first_, other.first_);
        std::swap(last_, other.last_);
        return *this;
    }
    ~SlotList() = default;

    [[nodiscard]] bool empty() const noexcept { return first_ == no_slot; }
    /// no_slot if the list is empty.
    [[nodiscard]] Slot first() const noexcept { return first_; }
    [[nodiscard]] Slot last() const noexcept { return last_; }

    template <class Records>
    void push_back(Records& records, Slot slot) noexcept {
        records[slot].*Links = {last_, no_slot};
        next_of(records, last_) = slot;
        last_ = slot;
    }

    template <class Records>
    void remove(Records& records, Slot slot) noexcept {
        const SlotLinks links = records[slot].*Links;
        next_of(records, links.previous) = links.next;
        (links.next == no_slot ? last_ : (records[links.next].*Links).previous) = links.previous;
    }

    /// Merges the ascending runs that are there, so it is O(n) if there are few and O(n log n) in any case. Stable.
    template <class Records, class Before>
    void sort(Records& records, Before&& before) noexcept {
        std::array<Slot, 33> merged;  // [power]: a run that was merged of 2^power runs, or none
        merged.fill(no_slot);
        while (first_ != no_slot) {
            Slot run = cut_run(records, before);
            std::size_t power = 0;
            for (; merged[power] != no_slot; ++power) {
                run = merge(records, std::exchange(merged[power], no_slot), run, before);
            }
            merged[power] = run;
        }
        Slot all = no_slot;
        for (const Slot run : merged) all = merge(records, run, all, before);

        last_ = no_slot;
        while (all != no_slot) {
            const Slot next = (records[all].*Links).next;
            push_back(records, all);
            all = next;
        }
    }

    /// How many slots there are, or nullopt if the invariants do not hold or `fits(slot, previous)` is not true of each
    /// of them (the first one has no_slot before it).
    template <class Records, class Fits>
    [[nodiscard]] std::optional<std::size_t> check(const Records& records, Fits&& fits) const {
        std::size_t count = 0;
        Slot previous = no_slot;
        for (Slot slot = first_; slot != no_slot; slot = (records[slot].*Links).next) {
            if (slot >= records.size() || (records[slot].*Links).previous != previous) return std::nullopt;
            if (++count > records.size() || !fits(slot, previous)) return std::nullopt;
            previous = slot;
        }
        if (previous != last_) return std::nullopt;
        return count;
    }

   private:
    template <class Records>
    Slot& next_of(Records& records, Slot slot) noexcept {
        return slot == no_slot ? first_ : (records[slot].*Links).next;
    }

    /// Takes the longest ascending run off the front.
    template <class Records, class Before>
    Slot cut_run(Records& records, Before& before) noexcept {
        const Slot run = first_;
        Slot end = run;
        for (Slot next = (records[end].*Links).next; next != no_slot && !before(next, end);) {
            next = (records[end = next].*Links).next;
        }
        first_ = std::exchange((records[end].*Links).next, no_slot);
        return run;
    }

    /// Only the forward links of a run are good.
    template <class Records, class Before>
    static Slot merge(Records& records, Slot left, Slot right, Before& before) noexcept {
        Slot first = no_slot;
        Slot* end = &first;
        while (left != no_slot && right != no_slot) {
            Slot& lesser = before(right, left) ? right : left;
            *end = lesser;
            end = &(records[lesser].*Links).next;
            lesser = *end;
        }
        *end = left != no_slot ? left : right;
        return first;
    }

    Slot first_ = no_slot;
    Slot last_ = no_slot;
};

}  // namespace vigil
