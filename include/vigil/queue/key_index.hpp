#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Finds the slots of an owner by the hashes of their keys. It stores no keys: the owner compares them.
///
/// Extendible hashing: the upper bits of a hash choose a segment, the lower ones a place in it, from which on it is
/// searched. A segment that is full is split in two by the next upper bit, so growing never takes longer than that,
/// however large the index is. Only the directory of segments is ever copied: 4 bytes for some 200 keys.
///
/// Invariants: a slot is in the segment of its hash, and between its home place and it no place is empty; each segment
/// has counted its slots, at most max_load; the directory names for each prefix the segment that is responsible.
/// All calls O(1). insert() leaves the index as it was if it throws; nothing else throws. Movable. Memory is kept.
class KeyIndex {
   public:
    using Slot = std::uint32_t;
    using Hash = std::uint32_t;
    static constexpr Slot no_slot = ~Slot{0};

    KeyIndex() noexcept = default;
    KeyIndex(KeyIndex&& other) noexcept { *this = std::move(other); }
    KeyIndex& operator=(KeyIndex&& other) noexcept {
        std::swap(directory_, other.directory_);
        std::swap(segments_, other.segments_);
        std::swap(depth_, other.depth_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~KeyIndex() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return directory_.capacity() * sizeof(SegmentNumber) + segments_.bytes() + segments_.size() * sizeof(Places);
    }

    /// The slot with that hash for which `equal(slot)` is true, or no_slot.
    template <class Equal>
    [[nodiscard]] Slot find(Hash hash, Equal&& equal) const {
        if (directory_.empty()) return no_slot;
        const Places& places = *segment_of(hash).places;
        for (std::size_t at = home(hash); places[at].slot != no_slot; at = next(at)) {
            if (places[at].hash == hash && equal(places[at].slot)) return places[at].slot;
        }
        return no_slot;
    }

    /// The key of `slot` must not be there yet. std::length_error if keys without number share the bits of a segment.
    void insert(Hash hash, Slot slot) {
        if (directory_.empty()) make_first_segment();
        while (segment_of(hash).count == max_load) split(hash);
        Segment& segment = segment_of(hash);
        put(*segment.places, {hash, slot});
        ++segment.count;
        ++size_;
    }

    void erase(Hash hash, Slot slot) noexcept {
        Segment& segment = segment_of(hash);
        Places& places = *segment.places;
        std::size_t hole = position_of(places, hash, slot);
        // Those behind move up, as far as the hole is not before their home.
        for (std::size_t at = next(hole); places[at].slot != no_slot; at = next(at)) {
            if (distance(home(places[at].hash), at) < distance(hole, at)) continue;
            places[hole] = places[at];
            hole = at;
        }
        places[hole].slot = no_slot;
        --segment.count;
        --size_;
    }

    /// Makes the key of `old_slot` one of `new_slot`.
    void replace(Hash hash, Slot old_slot, Slot new_slot) noexcept {
        Places& places = *segment_of(hash).places;
        places[position_of(places, hash, old_slot)].slot = new_slot;
    }

    /// A search for `hash` will follow soon.
    void prefetch(Hash hash) const noexcept {
        if (!directory_.empty()) __builtin_prefetch(&(*segment_of(hash).places)[home(hash)]);
    }
    /// Where a search for `hash` will probably end; for prefetching only.
    [[nodiscard]] Slot guess(Hash hash) const noexcept {
        return find(hash, [](Slot) { return true; });
    }

    /// `hash_of(slot)` gives the hash that the slot was inserted with.
    template <class HashOf>
    [[nodiscard]] bool check(HashOf&& hash_of) const {
        if (directory_.size() != (directory_.empty() ? 0 : std::size_t{1} << depth_)) return false;
        std::size_t counted = 0;
        for (std::size_t prefix = 0; prefix < directory_.size(); ++prefix) {
            const Segment& segment = segments_[directory_[prefix]];
            if (segment.depth > depth_) return false;
            const std::size_t covered = std::size_t{1} << (depth_ - segment.depth);
            const std::size_t first = prefix & ~(covered - 1);
            if (directory_[prefix] != directory_[first]) return false;
            if (prefix != first) continue;
            if (!check_segment(segment, first, first + covered, hash_of)) return false;
            counted += segment.count;
        }
        return counted == size_;
    }

   private:
    static constexpr std::size_t places_in_segment = 512;  // a page of memory
    static constexpr std::uint32_t max_load = 416;
    static constexpr int hash_bits = 32;
    static constexpr int home_bits = 9;
    static_assert(1 << home_bits == places_in_segment);

    struct Place {
        Hash hash = 0;
        Slot slot = no_slot;
    };
    using Places = std::array<Place, places_in_segment>;
    struct Segment {
        std::unique_ptr<Places> places;
        std::uint32_t count = 0;
        int depth = 0;  // how many of the upper bits its hashes have in common
    };
    using SegmentNumber = std::uint32_t;

    static std::size_t home(Hash hash) noexcept { return hash % places_in_segment; }
    static std::size_t next(std::size_t at) noexcept { return (at + 1) % places_in_segment; }
    static std::size_t distance(std::size_t from, std::size_t to) noexcept { return (to - from) % places_in_segment; }

    [[nodiscard]] std::size_t prefix_of(Hash hash) const noexcept {
        return std::uint64_t{hash} >> (hash_bits - depth_);
    }
    [[nodiscard]] Segment& segment_of(Hash hash) noexcept { return segments_[directory_[prefix_of(hash)]]; }
    [[nodiscard]] const Segment& segment_of(Hash hash) const noexcept { return segments_[directory_[prefix_of(hash)]]; }

    static void put(Places& places, Place place) noexcept {
        std::size_t at = home(place.hash);
        while (places[at].slot != no_slot) at = next(at);
        places[at] = place;
    }
    static std::size_t position_of(const Places& places, Hash hash, Slot slot) noexcept {
        std::size_t at = home(hash);
        while (places[at].slot != slot) {
            assert(places[at].slot != no_slot);
            at = next(at);
        }
        return at;
    }

    void make_first_segment() {
        if (segments_.empty()) segments_.emplace_back(Segment{std::make_unique<Places>(), 0, 0});
        directory_.push_back(0);
    }

    /// Splits the segment of `hash` by the first bit that its hashes do not all have in common.
    void split(Hash hash) {
        if (segment_of(hash).depth == depth_) double_directory();
        auto upper = std::make_unique<Places>();
        const auto upper_number = static_cast<SegmentNumber>(segments_.size());
        segments_.emplace_back();

        Segment& lower = segment_of(hash);
        const int depth = ++lower.depth;
        const Places old = *lower.places;
        lower.places->fill({});
        lower.count = 0;
        std::uint32_t upper_count = 0;
        for (const Place& place : old) {
            if (place.slot == no_slot) continue;
            const bool above = (place.hash >> (hash_bits - depth) & 1) != 0;
            put(above ? *upper : *lower.places, place);
            ++(above ? upper_count : lower.count);
        }
        segments_[upper_number] = {std::move(upper), upper_count, depth};

        const std::size_t covered = std::size_t{1} << (depth_ - depth);
        const std::size_t upper_first = (prefix_of(hash) & ~(2 * covered - 1)) + covered;
        std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(upper_first), covered, upper_number);
    }

    void double_directory() {
        if (depth_ == hash_bits - home_bits) throw std::length_error("KeyIndex: too many keys with one hash");
        std::vector<SegmentNumber> doubled(directory_.size() * 2);
        for (std::size_t prefix = 0; prefix < doubled.size(); ++prefix) doubled[prefix] = directory_[prefix / 2];
        directory_ = std::move(doubled);
        ++depth_;
    }

    template <class HashOf>
    [[nodiscard]] bool check_segment(const Segment& segment, std::size_t first, std::size_t end,
                                     HashOf& hash_of) const {
        const Places& places = *segment.places;
        std::uint32_t counted = 0;
        for (std::size_t at = 0; at < places.size(); ++at) {
            if (places[at].slot == no_slot) continue;
            ++counted;
            const Hash hash = places[at].hash;
            if (prefix_of(hash) < first || prefix_of(hash) >= end || hash_of(places[at].slot) != hash) return false;
            for (std::size_t before = home(hash); before != at; before = next(before)) {
                if (places[before].slot == no_slot) return false;
            }
        }
        return counted == segment.count && counted <= max_load;
    }

    std::vector<SegmentNumber> directory_;  // 1 << depth_ of them, or none
    PagedArray<Segment> segments_;
    int depth_ = 0;
    std::size_t size_ = 0;
};

}  // namespace vigil
