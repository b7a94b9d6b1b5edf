#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/opened_entries.hpp>
#include <vigil/queue/parking_ring.hpp>

namespace vigil {

/// What falls due when, in exact order of (due, sequence). Three rings park what is not due yet: one of milliseconds
/// for the next 17 s, one of seconds for the next hours and one of quarters of an hour for the next months; each feeds
/// the one before. A bucket of milliseconds is opened, which means put in order, when its time has come and what is due
/// before it has gone. Min-heaps hold the rest: what is due before the first ring begins, and what is due after the
/// months. A schedule of few entries is just a heap. It holds at most 500 million.
///
/// What it gains over a heap alone (bench/queues): a million entries cost about half as much if they are near, two
/// thirds if they are within an hour; but ten thousand that are spread over an hour cost two to two and a half times as
/// much.
///
/// An entry belongs to a slot of its owner, who keeps its due, its sequence and its place. The owner may give it a
/// later due and a new sequence without telling (re-arm): when the old due comes up, the entry goes where it belongs.
/// An Owner has:
///     Schedule::Entry entry(Slot) const;        the entry as it should be
///     TimePoint armed(Slot) const;              the due that it was pushed or re-armed with, not later than that
///     void rearmed(Slot);                       it has been put where it belongs: armed() is the due of entry() now
///     void moved(Slot, Schedule::Place);        keeps where it now is
///     Schedule::Place place(Slot) const;        gives that
///     void prefetch(Slot) const;                entry() and moved() will be called soon
/// Entries that may_rearm() denies are moved by remove() and push() instead.
///
/// Invariants: there is one entry for each slot, and among the opened ones at most as many that were removed, and some;
/// heaps and what is opened are in order, the rings hold only what they cover; the owner knows where each entry is;
/// none stands later than it should. push O(log n) in the size of the heap concerned, O(1) if it is parked; remove
/// likewise; first() O(1) amortised. push() leaves the schedule as it was if memory runs out; first() loses nothing
/// then.
class Schedule {
   public:
    using Slot = MillisecondRing::Slot;
    enum class Place : std::uint32_t {};

    struct Entry {
        TimePoint due;
        std::uint64_t sequence;
        Slot slot;

        bool operator<(const Entry& other) const noexcept {
            return due != other.due ? due < other.due : sequence < other.sequence;
        }
    };

    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    [[nodiscard]] std::size_t size() const noexcept {
        return opened_.size() + near_.size() + milliseconds_.size() + seconds_.size() + long_.size() + far_.size();
    }
    /// Those that were removed from an opened bucket and are still there, too: at most as many, and a thousand.
    [[nodiscard]] std::size_t entries() const noexcept { return size() + opened_.removed(); }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return opened_.bytes() + near_.bytes() + milliseconds_.bytes() + seconds_.bytes() + long_.bytes() +
               far_.bytes();
    }

    /// Not later than any due; exact unless a parked entry was removed or one was re-armed.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept {
        std::optional<TimePoint> earliest;
        const auto consider = [&](std::optional<TimePoint> due) {
            if (due && (!earliest || *due < *earliest)) earliest = due;
        };
        consider(milliseconds_.earliest());
        consider(seconds_.earliest());
        consider(long_.earliest());
        if (!near_.empty()) consider(near_.top().due);
        if (!far_.empty()) consider(far_.top().due);
        if (const Entry* opened = opened_.lower_bound()) consider(opened->due);
        return earliest;
    }

    /// A push() for `due` will follow soon. To be called twice, with something else between.
    void prefetch_first(TimePoint due) const noexcept { milliseconds_.prefetch_bucket(due); }
    void prefetch_second(TimePoint due) const noexcept { milliseconds_.prefetch_chunk(due); }

    /// After this the next `count` calls of push() cannot fail, whatever is removed in between.
    void reserve_more(std::size_t count) {
        near_.reserve_more(count);
        if (milliseconds_.empty() && size() + count <= worth_parking) return;
        milliseconds_.reserve_more(count);
        seconds_.reserve_more(count);
        long_.reserve_more(count);
        far_.reserve_more(count);
    }

    template <class Owner>
    void push(TimePoint now, const Entry& entry, Owner&& owner) {
        if (milliseconds_.empty()) {
            if (size() < worth_parking) return near_.push(entry, in(Area::near, owner));
            milliseconds_.begin_at(milliseconds_.bucket_of(now) + 1);
        }
        insert(entry, owner);
    }

    /// Whether an entry that is there may be given a later due without telling.
    [[nodiscard]] static bool may_rearm(Place where) noexcept { return where != in_opened_bucket; }

    template <class Owner>
    void remove(Slot slot, Owner&& owner) noexcept {
        const Place where = owner.place(slot);
        if (where == in_opened_bucket) {
            owner.moved(slot, nowhere);
            return opened_.remove(is_there(owner));
        }
        switch (area_of(where)) {
            case Area::near:
                return near_.remove(index_of(where), in(Area::near, owner));
            case Area::far:
                return far_.remove(index_of(where), in(Area::far, owner));
            case Area::milliseconds:
                return milliseconds_.remove(index_of(where), owner.armed(slot), in_ring(Area::milliseconds, owner));
            case Area::seconds:
                return seconds_.remove(index_of(where), owner.armed(slot), in_ring(Area::seconds, owner));
            case Area::months:
                return long_.remove(index_of(where), owner.armed(slot), in_ring(Area::months, owner));
        }
    }

    /// The earliest entry if it is due at `now`, else null. Opening buckets and putting re-armed entries where they
    /// belong lowers `limit`, one for one; when it is used up the answer is null too, and the next call goes on.
    template <class Owner>
    [[nodiscard]] const Entry* first(TimePoint now, std::size_t& limit, Owner&& owner) {
        for (;;) {
            if (!opened_.drop_removed(limit, is_there(owner))) return nullptr;
            if (!open_what_may_be_first(now, limit, owner)) return nullptr;
            if (!opened_.all_in_order()) {  // the rest of its bucket was removed
                opened_.close();
                continue;
            }
            MinHeap<Entry>* heap = first_heap();
            const Entry* opened = opened_.first();
            if (opened != nullptr && (heap == nullptr || *opened < heap->top())) {
                if (!is_there(owner)(*opened)) continue;  // removed before its run was closed
                return opened->due <= now ? opened : nullptr;
            }
            if (heap == nullptr || heap->top().due > now) return nullptr;
            const Entry current = owner.entry(heap->top().slot);
            if (current.sequence == heap->top().sequence) return &heap->top();
            if (limit == 0) return nullptr;
            --limit;
            reserve_more(1);
            heap->pop(in(heap == &near_ ? Area::near : Area::far, owner));
            owner.rearmed(current.slot);
            push(now, current, owner);
        }
    }

    /// The earliest entry, due or not. Cheap if it is opened already or the top of a heap; else it costs what
    /// each_by_due() says.
    template <class Owner>
    [[nodiscard]] std::optional<Entry> earliest(const Owner& owner) const {
        std::optional<Entry> found;
        const auto none_parked_until = [&](const Entry& entry) {
            return !first_until(milliseconds_, entry.due) && !first_until(seconds_, entry.due) &&
                   !first_until(long_, entry.due);
        };
        const MinHeap<Entry>* heap = first_heap();
        const Entry* opened = opened_.earliest(is_there(owner));
        if (opened != nullptr && (heap == nullptr || *opened < heap->top()) && none_parked_until(*opened)) {
            found = *opened;
        } else if (heap != nullptr && (opened == nullptr || heap->top() < *opened) && none_parked_until(heap->top()) &&
                   owner.entry(heap->top().slot).sequence == heap->top().sequence) {
            found = heap->top();
        } else {
            each_by_due(owner, [&](const Entry& first) {
                found = first;
                return false;
            });
        }
        return found;
    }

    /// Calls `visit(entry)` in order of (due, sequence), until it returns false. Costs what lies in the heaps and in
    /// the buckets up to there.
    template <class Owner, class Visit>
    void each_by_due(const Owner& owner, Visit&& visit) const {
        MinHeap<Entry> found;
        const auto add = [&](Slot slot) { found.push(owner.entry(slot)); };
        for (std::size_t index = 0; index < near_.size(); ++index) add(near_[index].slot);
        for (std::size_t index = 0; index < far_.size(); ++index) add(far_[index].slot);
        opened_.each([&](const Entry& entry) {
            if (is_there(owner)(entry)) found.push(entry);
        });

        auto millisecond = milliseconds_.occupied_from(milliseconds_.first());
        auto second = seconds_.occupied_from(seconds_.first());
        auto wide = long_.occupied_from(long_.first());
        const auto start = [](const auto& ring, const auto& bucket) {
            return bucket ? ring.start_of(*bucket) : TimePoint::max();
        };
        const auto add_bucket = [&](const auto& ring, auto& bucket) {
            ring.each_in(*bucket, add);
            bucket = ring.occupied_from(*bucket + 1);
        };
        for (;;) {
            const bool all_known = !millisecond && !second && !wide;
            const TimePoint known_before =
                std::min({start(milliseconds_, millisecond), start(seconds_, second), start(long_, wide)});
            while (!found.empty() && (all_known || found.top().due < known_before)) {
                if (!visit(found.top())) return;
                found.pop();
            }
            if (all_known) return;
            if (millisecond && start(milliseconds_, millisecond) == known_before) {
                add_bucket(milliseconds_, millisecond);
            } else if (second && start(seconds_, second) == known_before) {
                add_bucket(seconds_, second);
            } else {
                add_bucket(long_, wide);
            }
        }
    }

    template <class Owner>
    [[nodiscard]] bool check(const Owner& owner) const {
        bool known = true;
        const auto check_heap = [&](Area area, const MinHeap<Entry>& heap) {
            for (std::size_t index = 0; index < heap.size(); ++index) {
                const Slot slot = heap[index].slot;
                known = known && owner.armed(slot) == heap[index].due && !(owner.entry(slot) < heap[index]) &&
                        owner.place(slot) == place(area, index);
            }
            return heap.check();
        };
        const auto check_ring = [&](Area area, const auto& ring) {
            return ring.check([&](Slot slot, std::uint32_t where) {
                known = known && owner.armed(slot) <= owner.entry(slot).due && owner.place(slot) == place(area, where);
                return owner.armed(slot);
            });
        };
        return opened_.check(is_there(owner)) && check_heap(Area::near, near_) && check_heap(Area::far, far_) &&
               check_ring(Area::milliseconds, milliseconds_) && check_ring(Area::seconds, seconds_) &&
               check_ring(Area::months, long_) && known;
    }

   private:
    // Below this a heap is as fast as the rings, and needs no tables of buckets.
    static constexpr std::size_t worth_parking = 1024;

    enum class Area : std::uint32_t { near, milliseconds, seconds, months, far };
    static constexpr int index_bits = 29;
    static constexpr std::uint32_t index_mask = (std::uint32_t{1} << index_bits) - 1;
    static constexpr Place in_opened_bucket{~std::uint32_t{0} - 1};
    static constexpr Place nowhere{~std::uint32_t{0}};

    static Place place(Area area, std::size_t index) noexcept {
        assert(index <= index_mask);
        return Place{static_cast<std::uint32_t>(area) << index_bits | static_cast<std::uint32_t>(index)};
    }
    static Area area_of(Place where) noexcept { return Area{static_cast<std::uint32_t>(where) >> index_bits}; }
    static std::uint32_t index_of(Place where) noexcept { return static_cast<std::uint32_t>(where) & index_mask; }

    template <class Owner>
    static auto in(Area area, Owner& owner) noexcept {
        return [area, &owner](const Entry& entry, std::size_t index) noexcept {
            owner.moved(entry.slot, place(area, index));
        };
    }
    template <class Owner>
    static auto in_ring(Area area, Owner& owner) noexcept {
        return [area, &owner](Slot slot, std::uint32_t index) noexcept { owner.moved(slot, place(area, index)); };
    }

    /// The heap with the earliest entry, or null.
    [[nodiscard]] const MinHeap<Entry>* first_heap() const noexcept {
        if (far_.empty()) return near_.empty() ? nullptr : &near_;
        return near_.empty() || far_.top() < near_.top() ? &far_ : &near_;
    }
    [[nodiscard]] MinHeap<Entry>* first_heap() noexcept {
        return const_cast<MinHeap<Entry>*>(std::as_const(*this).first_heap());
    }

    template <class Owner>
    void insert(const Entry& entry, Owner& owner) {
        if (milliseconds_.covers(entry.due)) {
            owner.moved(entry.slot, place(Area::milliseconds, milliseconds_.add(entry.slot, entry.due)));
            return;
        }
        if (milliseconds_.bucket_of(entry.due) < milliseconds_.first()) {
            return near_.push(entry, in(Area::near, owner));
        }
        if (seconds_.empty()) seconds_.begin_at(wider_of(milliseconds_.first() + milliseconds_.bucket_count));
        if (seconds_.covers(entry.due)) {
            owner.moved(entry.slot, place(Area::seconds, seconds_.add(entry.slot, entry.due)));
            return;
        }
        if (long_.empty()) long_.begin_at(wider_of(seconds_.first() + seconds_.bucket_count));
        if (long_.covers(entry.due)) {
            owner.moved(entry.slot, place(Area::months, long_.add(entry.slot, entry.due)));
        } else {
            far_.push(entry, in(Area::far, owner));
        }
    }

    // A bucket of one ring is 1024 of the one before.
    static std::int64_t wider_of(std::int64_t bucket) noexcept { return bucket >> 10; }
    static std::int64_t narrower_of(std::int64_t bucket) noexcept { return bucket * 1024; }

    /// Whether an opened entry was not removed. (Then its slot is free, or has another entry.)
    template <class Owner>
    static auto is_there(const Owner& owner) noexcept {
        return [&owner](const Entry& entry) {
            return owner.place(entry.slot) == in_opened_bucket && owner.entry(entry.slot).sequence == entry.sequence;
        };
    }

    /// Empties every bucket that may hold something earlier than what is in order already, or due at `now`. False if
    /// the limit was reached before that.
    template <class Owner>
    bool open_what_may_be_first(TimePoint now, std::size_t& limit, Owner& owner) {
        for (;;) {
            TimePoint until = now;
            if (!near_.empty()) until = std::min(until, near_.top().due);
            if (const Entry* opened = opened_.first()) until = std::min(until, opened->due);
            if (const auto bucket = first_until(milliseconds_, until)) {
                if (!open(milliseconds_, *bucket, limit, owner)) return false;
            } else if (const auto second = first_until(seconds_, until)) {
                move_on(milliseconds_, narrower_of(*second));
                if (!open(seconds_, *second, limit, owner)) return false;
            } else if (const auto wide = first_until(long_, until)) {
                move_on(seconds_, narrower_of(*wide));
                move_on(milliseconds_, narrower_of(narrower_of(*wide)));
                if (!open(long_, *wide, limit, owner)) return false;
            } else {
                return true;
            }
        }
    }
    /// A ring that has nothing before `bucket` may go on to it, so that it covers what comes from a wider one.
    template <class Ring>
    static void move_on(Ring& ring, typename Ring::BucketNumber bucket) noexcept {
        if (bucket > ring.first()) ring.begin_at(bucket);
    }

    template <class Ring>
    static std::optional<typename Ring::BucketNumber> first_until(const Ring& ring, TimePoint until) noexcept {
        if (ring.empty()) return std::nullopt;
        const auto bucket = ring.first_occupied();
        if (ring.start_of(bucket) > until) return std::nullopt;
        return bucket;
    }

    /// Empties a bucket: its entries are put in order, or where else they belong. False if the limit was reached
    /// before.
    template <class Ring, class Owner>
    bool open(Ring& ring, typename Ring::BucketNumber bucket, std::size_t& limit, Owner& owner) {
        ring.begin_at(bucket);
        const auto last_to_open = std::is_same_v<Ring, MillisecondRing> ? bucket : milliseconds_.first() - 1;
        while (limit > 0) {
            const auto batch = ring.batch_of(bucket);
            for (const Slot slot : batch) owner.prefetch(slot);
            for (const Slot slot : ring.coming_after_batch(bucket)) owner.prefetch(slot);
            reserve_for(batch, owner);
            ring.take_from(bucket);
            const bool is_empty = ring.batch_of(bucket).count == 0;
            if (is_empty) ring.begin_at(bucket + 1);
            for (const Slot slot : batch) {
                const Entry entry = owner.entry(slot);
                owner.rearmed(slot);
                if (milliseconds_.bucket_of(entry.due) <= last_to_open) {
                    opened_.gather(entry);
                    owner.moved(slot, in_opened_bucket);
                } else {
                    insert(entry, owner);
                }
            }
            limit -= std::min<std::size_t>(limit, batch.count);
            if (is_empty) {
                opened_.close();
                return true;
            }
        }
        return false;
    }

    template <class Batch, class Owner>
    void reserve_for(const Batch& batch, const Owner& owner) {
        bool parked = false, beyond = false;
        for (const Slot slot : batch) {
            const TimePoint due = owner.entry(slot).due;
            parked = parked || milliseconds_.bucket_of(due) >= milliseconds_.first();
            beyond = beyond || (parked && !milliseconds_.covers(due));
        }
        opened_.reserve_more(batch.count);
        near_.reserve_more(batch.count);
        if (parked) milliseconds_.reserve_more(batch.count);
        if (!beyond) return;
        seconds_.reserve_more(batch.count);
        long_.reserve_more(batch.count);
        far_.reserve_more(batch.count);
    }

    OpenedEntries<Entry> opened_;
    MinHeap<Entry> near_, far_;
    MillisecondRing milliseconds_;
    SecondRing seconds_;
    LongRing long_;
};

}  // namespace vigil
