#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vigil/core/time.hpp>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/parking_ring.hpp>

namespace vigil {

/// What falls due when, in exact order of (due, sequence): a min-heap decides what comes next, and a ring parks what is
/// due within the next seconds but not yet, so that the heap stays small enough for the processor's cache.
///
/// An entry belongs to a slot of its owner, who keeps the entry's place: every call that moves entries calls
/// `moved(slot, place)` for each. The owner is given the time and passes it on.
///
/// Invariants: the two heaps are in order, and the ring holds only what it covers. So once settle(now) has returned true,
/// the ring holds nothing that is due at now, and first() is the earliest of what is.
/// push and pop O(log n) in the size of the heap concerned, remove O(1) for what is parked, settle O(limit).
/// push() leaves the schedule as it was if memory runs out; settle() may throw then, having lost nothing.
class Schedule {
   public:
    using Slot = std::uint32_t;
    enum class Place : std::uint32_t {};

    struct Entry {
        TimePoint due;
        std::uint64_t sequence;
        Slot slot;

        bool operator<(const Entry& other) const noexcept {
            return due != other.due ? due < other.due : sequence < other.sequence;
        }
    };

    [[nodiscard]] bool empty() const noexcept { return near_.empty() && far_.empty() && ring_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return near_.size() + far_.size() + ring_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept { return near_.bytes() + far_.bytes() + ring_.bytes(); }

    /// Not later than any due; exact unless a parked entry was removed.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept {
        auto due = ring_.earliest();
        for (const auto* heap : {&near_, &far_}) {
            if (!heap->empty() && (!due || heap->top().due < *due)) due = heap->top().due;
        }
        return due;
    }

    template <class Moved>
    void push(TimePoint now, const Entry& entry, Moved&& moved) {
        if (ring_.empty()) {
            if (near_.size() + far_.size() < worth_parking) return near_.push(entry, in_area(Area::near, moved));
            ring_.begin_at(ring_.bucket_of(now) + 1);
        }
        if (ring_.covers(entry.due)) {
            moved(entry.slot, place(Area::ring, ring_.add(entry)));
        } else if (ring_.bucket_of(entry.due) > ring_.first()) {
            far_.push(entry, in_area(Area::far, moved));
        } else {
            near_.push(entry, in_area(Area::near, moved));
        }
    }

    template <class Moved>
    void remove(Place where, Moved&& moved) noexcept {
        switch (area_of(where)) {
            case Area::near: return near_.remove(index_of(where), in_area(Area::near, moved));
            case Area::far: return far_.remove(index_of(where), in_area(Area::far, moved));
            case Area::ring: return ring_.remove(index_of(where), in_area(Area::ring, moved));
        }
    }

    /// Brings what is due at `now` into order, at most `limit` entries of it, which is lowered by the number. False if
    /// there is more to do: then first() is not to be trusted yet.
    template <class Moved>
    bool settle(TimePoint now, std::size_t& limit, Moved&& moved) {
        const auto end = ring_.bucket_of(now) + 1;
        while (!ring_.empty()) {
            const auto bucket = *ring_.first_occupied();
            if (bucket >= end) break;
            if (limit == 0) return false;
            --limit;
            near_.reserve_one();
            near_.push(ring_.take_from(bucket), in_area(Area::near, moved));
        }
        if (ring_.first() < end) ring_.begin_at(end);
        return true;
    }

    /// The earliest entry in order, or null.
    [[nodiscard]] const Entry* first() const noexcept {
        if (far_.empty()) return near_.empty() ? nullptr : &near_.top();
        return near_.empty() || far_.top() < near_.top() ? &far_.top() : &near_.top();
    }

    [[nodiscard]] const Entry& operator[](Place where) const noexcept {
        const auto area = area_of(where);
        return area == Area::near  ? near_[index_of(where)]
               : area == Area::far ? far_[index_of(where)]
                                   : ring_[index_of(where)];
    }

    [[nodiscard]] bool check() const {
        return near_.check() && far_.check() && ring_.check();
    }

   private:
    // Below this a heap is as fast as the ring, and needs no table of buckets.
    static constexpr std::size_t worth_parking = 1024;

    enum class Area : std::uint32_t { near, far, ring };

    static Place place(Area area, std::size_t index) noexcept {
        assert(index < (std::size_t{1} << 30));
        return Place{static_cast<std::uint32_t>(area) << 30 | static_cast<std::uint32_t>(index)};
    }
    static Area area_of(Place where) noexcept { return Area{static_cast<std::uint32_t>(where) >> 30}; }
    static std::uint32_t index_of(Place where) noexcept { return static_cast<std::uint32_t>(where) & 0x3fffffff; }

    template <class Moved>
    static auto in_area(Area area, Moved& moved) noexcept {
        return [area, &moved](const Entry& entry, std::size_t index) noexcept { moved(entry.slot, place(area, index)); };
    }

    MinHeap<Entry> near_, far_;
    ParkingRing<Entry> ring_;
};

}  // namespace vigil
