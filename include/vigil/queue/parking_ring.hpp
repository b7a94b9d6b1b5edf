#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Keeps entries that are not due yet out of a heap: a ring of buckets of about a millisecond, unordered inside. Adding
/// and removing touch one bucket, whatever is parked elsewhere; when time reaches a bucket, its entries move on.
///
/// An Entry is plain and has `due`. Bucket b holds what is due in [b, b + 1) x 1024 us; the ring covers the buckets
/// [first, first + bucket_count), 16.8 s, and refuses what is due outside of them.
///
/// Invariants: every entry lies in the bucket of its due; a bucket's earliest is not later than any of its entries; the
/// occupancy bits tell which buckets are empty; in a bucket's list of chunks all but the first are full; each chunk is
/// in one list or free. All calls O(1). add() leaves the ring as it was if memory runs out; nothing else throws.
template <class Entry>
class ParkingRing {
    static_assert(std::is_trivially_copyable_v<Entry>);

   public:
    using Place = std::uint32_t;  // where an entry lies
    using BucketNumber = std::int64_t;

    static constexpr BucketNumber bucket_count = 16 * 1024;
    static constexpr BucketNumber bucket_of(TimePoint due) noexcept { return due.time_since_epoch().count() >> 10; }

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
        assert(empty() || (first >= first_ && first <= *first_occupied()));
        first_ = first;
    }

    [[nodiscard]] std::optional<BucketNumber> first_occupied() const noexcept {
        if (empty()) return std::nullopt;
        return first_ + table_->occupied.distance_from(index_of(first_));
    }
    /// Not later than the due of any entry; exact unless that entry was removed.
    [[nodiscard]] std::optional<TimePoint> earliest() const noexcept {
        if (empty()) return std::nullopt;
        return table_->buckets[index_of(*first_occupied())].earliest;
    }

    Place add(const Entry& entry) {
        assert(covers(entry.due));
        if (!table_) table_ = std::make_unique<Table>();
        const std::size_t index = index_of(bucket_of(entry.due));
        Bucket& bucket = table_->buckets[index];
        if (bucket.count % chunk_size == 0) bucket.chunk = new_chunk(bucket.chunk);
        if (bucket.count == 0) {
            bucket.earliest = entry.due;
            table_->occupied.set(index);
        } else if (entry.due < bucket.earliest) {
            bucket.earliest = entry.due;
        }
        ++bucket.count;
        ++size_;
        const Place place = last_place(bucket);
        at(place) = entry;
        return place;
    }

    [[nodiscard]] const Entry& operator[](Place place) const noexcept {
        return chunks_[place / chunk_size].entries[place % chunk_size];
    }

    /// Another entry of the bucket may take the place of the removed one: then `moved(entry, place)` is called.
    template <class Moved>
    void remove(Place place, Moved&& moved) noexcept {
        const std::size_t index = index_of(bucket_of(at(place).due));
        const Place last = last_place(table_->buckets[index]);
        if (place != last) {
            at(place) = at(last);
            moved(at(place), place);
        }
        remove_last(index);
    }

    /// Takes an entry out of an occupied bucket, in no particular order.
    Entry take_from(BucketNumber bucket) noexcept {
        const std::size_t index = index_of(bucket);
        const Entry taken = at(last_place(table_->buckets[index]));
        remove_last(index);
        return taken;
    }

    [[nodiscard]] bool check() const {
        std::size_t counted = 0, chunks = 0;
        for (BucketNumber number = first_; table_ && number < first_ + bucket_count; ++number) {
            const Bucket& bucket = table_->buckets[index_of(number)];
            if (table_->occupied.test(index_of(number)) != (bucket.count > 0)) return false;
            std::uint32_t left = bucket.count;
            for (std::uint32_t chunk = bucket.chunk; left > 0; chunk = chunks_[chunk].next) {
                if (chunk == no_chunk) return false;
                const std::uint32_t used = (left - 1) % chunk_size + 1;
                for (std::uint32_t index = 0; index < used; ++index) {
                    const Entry& entry = chunks_[chunk].entries[index];
                    if (bucket_of(entry.due) != number || entry.due < bucket.earliest) return false;
                }
                left -= used;
                ++chunks;
            }
            counted += bucket.count;
        }
        for (std::uint32_t chunk = free_chunk_; chunk != no_chunk && chunks <= chunks_.size(); ++chunks) {
            chunk = chunks_[chunk].next;
        }
        return counted == size_ && chunks == chunks_.size();
    }

   private:
    static constexpr std::uint32_t chunk_size = 16;
    static constexpr std::uint32_t no_chunk = ~std::uint32_t{0};

    struct Chunk {
        std::array<Entry, chunk_size> entries;
        std::uint32_t next;
    };

    struct Bucket {
        std::uint32_t chunk = no_chunk;  // the one that is not full
        std::uint32_t count = 0;
        TimePoint earliest{};
    };

    /// Which buckets are occupied, with one summary bit for each 64 of them.
    class Occupancy {
       public:
        void set(std::size_t index) noexcept {
            words_[index / 64] |= bit(index);
            summary_[index / 64 / 64] |= bit(index / 64);
        }
        void reset(std::size_t index) noexcept {
            words_[index / 64] &= ~bit(index);
            if (words_[index / 64] == 0) summary_[index / 64 / 64] &= ~bit(index / 64);
        }
        [[nodiscard]] bool test(std::size_t index) const noexcept { return (words_[index / 64] & bit(index)) != 0; }

        /// How far the next occupied bucket is, going round from `start`; one must be occupied.
        [[nodiscard]] BucketNumber distance_from(std::size_t start) const noexcept {
            const auto found = [&](std::size_t index) {
                return static_cast<BucketNumber>((index - start) % bucket_count);
            };
            if (const auto rest = words_[start / 64] & ~(bit(start) - 1); rest != 0) {
                return found(start / 64 * 64 + static_cast<std::size_t>(std::countr_zero(rest)));
            }
            for (std::size_t word = start / 64 + 1;;) {
                word %= words_.size();
                if (const auto rest = summary_[word / 64] & ~(bit(word) - 1); rest != 0) {
                    word = word / 64 * 64 + static_cast<std::size_t>(std::countr_zero(rest));
                    return found(word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word])));
                }
                word = (word / 64 + 1) * 64;
            }
        }

       private:
        static std::uint64_t bit(std::size_t index) noexcept { return std::uint64_t{1} << index % 64; }

        std::array<std::uint64_t, bucket_count / 64> words_{};
        std::array<std::uint64_t, bucket_count / 64 / 64> summary_{};
    };

    struct Table {
        std::array<Bucket, bucket_count> buckets;
        Occupancy occupied;
    };

    static std::size_t index_of(BucketNumber bucket) noexcept {
        return static_cast<std::size_t>(bucket) % bucket_count;
    }
    static Place last_place(const Bucket& bucket) noexcept {
        return bucket.chunk * chunk_size + (bucket.count - 1) % chunk_size;
    }
    Entry& at(Place place) noexcept { return chunks_[place / chunk_size].entries[place % chunk_size]; }

    std::uint32_t new_chunk(std::uint32_t next) {
        std::uint32_t chunk = free_chunk_;
        if (chunk == no_chunk) {
            chunk = static_cast<std::uint32_t>(chunks_.size());
            chunks_.push_back(Chunk{});
        } else {
            free_chunk_ = chunks_[chunk].next;
        }
        chunks_[chunk].next = next;
        return chunk;
    }

    void remove_last(std::size_t index) noexcept {
        Bucket& bucket = table_->buckets[index];
        if (bucket.count % chunk_size == 1) {
            const std::uint32_t emptied = bucket.chunk;
            bucket.chunk = chunks_[emptied].next;
            chunks_[emptied].next = std::exchange(free_chunk_, emptied);
        }
        --size_;
        if (--bucket.count == 0) table_->occupied.reset(index);
    }

    std::unique_ptr<Table> table_;
    PagedArray<Chunk> chunks_;
    std::uint32_t free_chunk_ = no_chunk;
    std::size_t size_ = 0;
    BucketNumber first_ = 0;
};

}  // namespace vigil
