#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Keeps what is not due yet out of a heap: a ring of buckets, each an unordered list of slot numbers. Adding and
/// removing touch one bucket, whatever else is parked; when time reaches a bucket, what is in it moves on.
///
/// Bucket b is for what is due in [b, b + 1) x 2^BucketBits us. The ring covers the buckets [first, first +
/// bucket_count), and refuses what is due outside of them.
///
/// Invariants: every slot is in the bucket of its due; a bucket's earliest is not later than the due of any of its
/// slots; the occupancy bits tell which buckets are empty; in a bucket's list of chunks all but the first are full;
/// each chunk is in one list or free. All calls O(1). add() leaves the ring as it was if memory runs out; nothing else
/// throws.
template <int BucketBits>
class ParkingRing {
   public:
    using Slot = std::uint32_t;
    using Place = std::uint32_t;  // where a slot number lies
    using BucketNumber = std::int64_t;

    static constexpr BucketNumber bucket_count = 16 * 1024;
    static constexpr std::uint32_t chunk_size = 15;

    static constexpr BucketNumber bucket_of(TimePoint due) noexcept {
        return due.time_since_epoch().count() >> BucketBits;
    }
    static constexpr TimePoint start_of(BucketNumber bucket) noexcept {
        return TimePoint{Duration{bucket * (1 << BucketBits)}};
    }

    ParkingRing() noexcept = default;
    ParkingRing(ParkingRing&& other) noexcept { *this = std::move(other); }
    ParkingRing& operator=(ParkingRing&& other) noexcept {
        std::swap(table_, other.table_);
        std::swap(chunks_, other.chunks_);
        std::swap(free_chunk_, other.free_chunk_);
        std::swap(size_, other.size_);
        std::swap(first_, other.first_);
        return *this;
    }
    ~ParkingRing() = default;

    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return chunks_.bytes() + (table_ ? sizeof(Table) : 0); }

    [[nodiscard]] BucketNumber first() const noexcept { return first_; }
    [[nodiscard]] bool covers(TimePoint due) const noexcept {
        const BucketNumber bucket = bucket_of(due);
        return bucket >= first_ && bucket - first_ < bucket_count;
    }
    /// Moves the ring on; the buckets that it leaves are empty.
    void begin_at(BucketNumber first) noexcept {
        assert(empty() || (first >= first_ && first <= first_occupied()));
        first_ = first;
    }

    /// The ring must not be empty.
    [[nodiscard]] BucketNumber first_occupied() const noexcept {
        return first_ + table_->occupied.distance_from(index_of(first_));
    }
    /// Not later than the due of any slot; exact unless that slot was removed.
    [[nodiscard]] std::optional<TimePoint> earliest() const noexcept {
        if (empty()) return std::nullopt;
        return table_->buckets[index_of(first_occupied())].earliest;
    }

    /// An add() for `due` will follow soon: first its bucket is fetched, by the second call what it will write to.
    void prefetch_bucket(TimePoint due) const noexcept {
        if (table_) prefetch(&table_->buckets[index_of(bucket_of(due))]);
    }
    void prefetch_chunk(TimePoint due) const noexcept {
        if (!table_) return;
        const Bucket& bucket = table_->buckets[index_of(bucket_of(due))];
        if (bucket.count > 0) prefetch(&chunks_[bucket.chunk]);
    }

    /// After this the next `count` calls of add() cannot fail.
    void reserve_more(std::size_t count) {
        if (!table_) table_ = std::make_unique<Table>();
        chunks_.reserve_more(count);
    }

    Place add(Slot slot, TimePoint due) {
        assert(covers(due));
        if (!table_) table_ = std::make_unique<Table>();
        const std::size_t index = index_of(bucket_of(due));
        Bucket& bucket = table_->buckets[index];
        if (bucket.count % chunk_size == 0) bucket.chunk = new_chunk(bucket.chunk);
        if (bucket.count == 0) {
            bucket.earliest = due;
            table_->occupied.set(index);
        } else if (due < bucket.earliest) {
            bucket.earliest = due;
        }
        ++bucket.count;
        ++size_;
        const Place place = last_place(bucket);
        at(place) = slot;
        return place;
    }

    /// Removes what lies at `place` and is due at `due`. Another slot of that bucket may move there: then
    /// `moved(slot, place)` is called.
    template <class Moved>
    void remove(Place place, TimePoint due, Moved&& moved) noexcept {
        const std::size_t index = index_of(bucket_of(due));
        const Place last = last_place(table_->buckets[index]);
        if (place != last) {
            const Slot slot = at(last);
            at(place) = slot;
            moved(slot, place);
        }
        remove_last(index);
    }

    /// Up to chunk_size slots of a bucket, in no particular order; none if it is empty.
    struct Batch {
        std::array<Slot, chunk_size> slots;
        std::uint32_t count;

        [[nodiscard]] const Slot* begin() const noexcept { return slots.data(); }
        [[nodiscard]] const Slot* end() const noexcept { return slots.data() + count; }
    };
    [[nodiscard]] Batch batch_of(BucketNumber number) const noexcept {
        const Bucket& bucket = table_->buckets[index_of(number)];
        if (bucket.count == 0) return {{}, 0};
        return {chunks_[bucket.chunk].slots, (bucket.count - 1) % chunk_size + 1};
    }
    /// Those that batch_of() gives after these are taken out, for prefetching.
    [[nodiscard]] std::span<const Slot> coming_after_batch(BucketNumber number) const noexcept {
        const Bucket& bucket = table_->buckets[index_of(number)];
        if (bucket.count <= chunk_size) return {};
        return chunks_[chunks_[bucket.chunk].next].slots;
    }
    /// Takes the slots of batch_of() out.
    void take_from(BucketNumber number) noexcept {
        Bucket& bucket = table_->buckets[index_of(number)];
        if (bucket.count == 0) return;
        const std::uint32_t count = (bucket.count - 1) % chunk_size + 1;
        bucket.count -= count;
        size_ -= count;
        free_first_chunk(bucket);
        if (bucket.count == 0) table_->occupied.reset(index_of(number));
    }

    /// Calls `visit(slot)` for each slot of a bucket, in no particular order.
    template <class Visit>
    void each_in(BucketNumber number, Visit&& visit) const {
        const Bucket& bucket = table_->buckets[index_of(number)];
        std::uint32_t left = bucket.count;
        for (std::uint32_t chunk = bucket.chunk; left > 0; chunk = chunks_[chunk].next) {
            for (std::uint32_t used = (left - 1) % chunk_size + 1; used > 0; --used, --left) {
                visit(chunks_[chunk].slots[used - 1]);
            }
        }
    }
    /// The first bucket from `number` on that is occupied; none if all are empty.
    [[nodiscard]] std::optional<BucketNumber> occupied_from(BucketNumber number) const noexcept {
        if (empty() || number >= first_ + bucket_count) return std::nullopt;
        const BucketNumber found = number + table_->occupied.distance_from(index_of(number));
        if (found >= first_ + bucket_count) return std::nullopt;
        return found;
    }

    /// `due_of(slot, place)` gives the due that the slot was added with.
    template <class DueOf>
    [[nodiscard]] bool check(DueOf&& due_of) const {
        std::size_t counted = 0, chunks = 0;
        for (BucketNumber number = first_; table_ && number < first_ + bucket_count; ++number) {
            const Bucket& bucket = table_->buckets[index_of(number)];
            if (table_->occupied.test(index_of(number)) != (bucket.count > 0)) return false;
            std::uint32_t left = bucket.count;
            for (std::uint32_t chunk = bucket.chunk; left > 0; chunk = chunks_[chunk].next, ++chunks) {
                if (chunk == no_chunk) return false;
                for (std::uint32_t used = (left - 1) % chunk_size + 1; used > 0; --used, --left) {
                    const TimePoint due = due_of(chunks_[chunk].slots[used - 1], chunk * stride + used - 1);
                    if (bucket_of(due) != number || due < bucket.earliest) return false;
                }
            }
            counted += bucket.count;
        }
        for (std::uint32_t chunk = free_chunk_; chunk != no_chunk; chunk = chunks_[chunk].next) {
            if (++chunks > chunks_.size()) return false;
        }
        return counted == size_ && chunks == chunks_.size();
    }

   private:
    static constexpr std::uint32_t stride = 16;  // of the places of a chunk: a power of two, to divide by
    static constexpr std::uint32_t no_chunk = ~std::uint32_t{0};

    struct alignas(64) Chunk {  // a cache line
        std::array<Slot, chunk_size> slots;
        std::uint32_t next;
    };

    struct Bucket {
        std::uint32_t chunk = no_chunk;  // the one that is not full
        std::uint32_t count = 0;
        TimePoint earliest{};
    };

    /// Which buckets are occupied, in three levels: a bit stands for a bucket, or for 64 bits of the level below.
    class Occupancy {
       public:
        void set(std::size_t index) noexcept {
            buckets_[index / 64] |= bit(index);
            words_[index / 64 / 64] |= bit(index / 64);
            groups_ |= bit(index / 64 / 64);
        }
        void reset(std::size_t index) noexcept {
            if ((buckets_[index / 64] &= ~bit(index)) != 0) return;
            if ((words_[index / 64 / 64] &= ~bit(index / 64)) != 0) return;
            groups_ &= ~bit(index / 64 / 64);
        }
        [[nodiscard]] bool test(std::size_t index) const noexcept { return (buckets_[index / 64] & bit(index)) != 0; }

        /// How far the next occupied bucket is, going round from `start`; one must be occupied.
        [[nodiscard]] BucketNumber distance_from(std::size_t start) const noexcept {
            const std::size_t word = start / 64, group = word / 64;
            if (const auto rest = from(start, buckets_[word])) return distance(start, word, rest);
            if (const auto rest = from(word + 1, words_[group]); rest && (word + 1) % 64 != 0) {
                return in_group(start, group, rest);
            }
            const auto later = (group + 1) % 64 == 0 ? 0 : from(group + 1, groups_);
            const auto next = static_cast<std::size_t>(std::countr_zero(later != 0 ? later : groups_));
            return in_group(start, next, words_[next]);
        }

       private:
        static std::uint64_t bit(std::size_t index) noexcept { return std::uint64_t{1} << index % 64; }
        static std::uint64_t from(std::size_t index, std::uint64_t bits) noexcept { return bits & ~(bit(index) - 1); }

        static BucketNumber distance(std::size_t start, std::size_t word, std::uint64_t bits) noexcept {
            const auto found = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
            return static_cast<BucketNumber>((found - start) % bucket_count);
        }
        [[nodiscard]] BucketNumber in_group(std::size_t start, std::size_t group, std::uint64_t words) const noexcept {
            const auto word = group * 64 + static_cast<std::size_t>(std::countr_zero(words));
            return distance(start, word, buckets_[word]);
        }

        std::array<std::uint64_t, bucket_count / 64> buckets_{};
        std::array<std::uint64_t, bucket_count / 64 / 64> words_{};
        std::uint64_t groups_ = 0;
        static_assert(bucket_count / 64 / 64 <= 64);
    };

    struct Table {
        std::array<Bucket, bucket_count> buckets;
        Occupancy occupied;
    };

    static std::size_t index_of(BucketNumber bucket) noexcept {
        return static_cast<std::size_t>(bucket) % bucket_count;
    }
    static Place last_place(const Bucket& bucket) noexcept {
        return bucket.chunk * stride + (bucket.count - 1) % chunk_size;
    }
    Slot& at(Place place) noexcept { return chunks_[place / stride].slots[place % stride]; }

    std::uint32_t new_chunk(std::uint32_t next) {
        std::uint32_t chunk = free_chunk_;
        if (chunk == no_chunk) {
            chunk = static_cast<std::uint32_t>(chunks_.size());
            chunks_.emplace_back();
        } else {
            free_chunk_ = chunks_[chunk].next;
        }
        chunks_[chunk].next = next;
        return chunk;
    }

    void remove_last(std::size_t index) noexcept {
        Bucket& bucket = table_->buckets[index];
        if (bucket.count % chunk_size == 1) free_first_chunk(bucket);
        --size_;
        if (--bucket.count == 0) table_->occupied.reset(index);
    }

    void free_first_chunk(Bucket& bucket) noexcept {
        const std::uint32_t emptied = bucket.chunk;
        bucket.chunk = chunks_[emptied].next;
        chunks_[emptied].next = std::exchange(free_chunk_, emptied);
    }

    std::unique_ptr<Table> table_;
    PagedArray<Chunk> chunks_;
    std::uint32_t free_chunk_ = no_chunk;
    std::size_t size_ = 0;
    BucketNumber first_ = 0;
};

using MillisecondRing = ParkingRing<10>;  ///< buckets of 1.02 ms, covers 16.8 s
using SecondRing = ParkingRing<20>;       ///< buckets of 1.05 s, covers 4.8 h
using LongRing = ParkingRing<30>;         ///< buckets of 18 min, covers 203 days

}  // namespace vigil
