#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vigil/core/time.hpp>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/parking_ring.hpp>

namespace vigil {

/// What falls due when, in exact order of (due, sequence). A min-heap decides what comes next; a ring parks what is due
/// within the next seconds, and feeds the heap a bucket at a time, so that the heap stays tiny; what is due later than
/// the ring reaches waits in a heap of its own.
///
/// An entry belongs to a slot of its owner, who keeps its due, its sequence and its place. An Owner has:
///     Schedule::Entry entry(Slot) const;        the entry as it was pushed
///     void moved(Slot, Schedule::Place);        keeps where it now is
///     Schedule::Place place(Slot) const;        gives that (for check())
///     void prefetch(Slot) const;                entry() and moved() will be called soon
///
/// Invariants: the two heaps are in order, the ring holds only what it covers, and the owner knows where each entry is.
/// push O(log n) in the size of the heap concerned, O(1) if it is parked; remove likewise; first() O(1) amortised.
/// push() leaves the schedule as it was if memory runs out; first() loses nothing then.
class Schedule {
   public:
    using Slot = ParkingRing::Slot;
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

    /// After this the next push() cannot fail, whatever is removed in between.
    void reserve_one() {
        near_.reserve_more(1);
        if (near_.size() + far_.size() < worth_parking && ring_.empty()) return;
        far_.reserve_more(1);
        ring_.reserve_one();
    }

    template <class Owner>
    void push(TimePoint now, const Entry& entry, Owner&& owner) {
        if (ring_.empty()) {
            if (near_.size() + far_.size() < worth_parking) return near_.push(entry, in(Area::near, owner));
            ring_.begin_at(ring_.bucket_of(now) + 1);
        }
        if (ring_.covers(entry.due)) {
            owner.moved(entry.slot, place(Area::ring, ring_.add(entry.slot, entry.due)));
        } else if (ring_.bucket_of(entry.due) < ring_.first()) {
            near_.push(entry, in(Area::near, owner));
        } else {
            far_.push(entry, in(Area::far, owner));
        }
    }

    /// Removes the entry at `where`, which is due at `due`.
    template <class Owner>
    void remove(Place where, TimePoint due, Owner&& owner) noexcept {
        switch (area_of(where)) {
            case Area::near:
                return near_.remove(index_of(where), in(Area::near, owner));
            case Area::far:
                return far_.remove(index_of(where), in(Area::far, owner));
            case Area::ring:
                return ring_.remove(index_of(where), due, [&](Slot slot, ParkingRing::Place moved_to) {
                    owner.moved(slot, place(Area::ring, moved_to));
                });
        }
    }

    /// The earliest entry if it is due at `now`, else null. Taking entries out of the ring lowers `limit`, one for one;
    /// when it is used up the answer is null too, and the next call goes on.
    template <class Owner>
    [[nodiscard]] const Entry* first(TimePoint now, std::size_t& limit, Owner&& owner) {
        while (!ring_.empty()) {
            const auto bucket = ring_.first_occupied();
            const auto start = ring_.start_of(bucket);
            if (start > now || (!near_.empty() && near_.top().due < start)) break;
            if (!open(bucket, limit, owner)) return nullptr;
        }
        const Entry* earliest = near_.empty() ? nullptr : &near_.top();
        if (!far_.empty() && (earliest == nullptr || far_.top() < *earliest)) earliest = &far_.top();
        return earliest != nullptr && earliest->due <= now ? earliest : nullptr;
    }

    template <class Owner>
    [[nodiscard]] bool check(const Owner& owner) const {
        bool known = true;
        const auto check_heap = [&](Area area, const MinHeap<Entry>& heap) {
            for (std::size_t index = 0; index < heap.size(); ++index) {
                const Entry kept = owner.entry(heap[index].slot);
                known = known && kept.due == heap[index].due && kept.sequence == heap[index].sequence &&
                        owner.place(kept.slot) == place(area, index);
            }
            return heap.check();
        };
        return check_heap(Area::near, near_) && check_heap(Area::far, far_) &&
               ring_.check([&](Slot slot, ParkingRing::Place where) {
                   known = known && owner.place(slot) == place(Area::ring, where);
                   return owner.entry(slot).due;
               }) &&
               known;
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

    template <class Owner>
    static auto in(Area area, Owner& owner) noexcept {
        return [area, &owner](const Entry& entry, std::size_t index) noexcept {
            owner.moved(entry.slot, place(area, index));
        };
    }

    /// Moves a bucket into the near heap. False if the limit was reached before its end.
    template <class Owner>
    bool open(ParkingRing::BucketNumber bucket, std::size_t& limit, Owner& owner) {
        ring_.begin_at(bucket);
        while (limit > 0) {
            near_.reserve_more(ParkingRing::chunk_size);
            const auto batch = ring_.take_from(bucket);
            if (batch.count == 0) {
                ring_.begin_at(bucket + 1);
                return true;
            }
            for (const Slot slot : batch) owner.prefetch(slot);
            for (const Slot slot : batch) near_.push(owner.entry(slot), in(Area::near, owner));
            limit -= std::min<std::size_t>(limit, batch.count);
        }
        return false;
    }

    MinHeap<Entry> near_, far_;
    ParkingRing ring_;
};

}  // namespace vigil
