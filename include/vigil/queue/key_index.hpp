#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/core/prefetch.hpp>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Finds the slots of an owner by the hashes of their keys. It stores no keys: the owner compares them.
///
/// Extendible hashing: the upper bits of a hash choose a segment, the lower ones a group of places in it, from which on
/// it is searched. A group is a cache line, and is compared as a whole. A segment that is full is split in two by the
/// next upper bit, so growing never takes longer than that, however large the index is. Only the directory of segments
/// is ever copied: 8 bytes for some 200 keys.
///
/// Invariants: a slot is in the segment of its hash, in its home group or, if that is full, in the next one that is
/// not; each segment has counted its slots, at most max_load; the directory names for each prefix the segment that is
/// responsible.
/// All calls O(1). insert() leaves the index as it was if it throws; nothing else throws. Movable. Memory is kept.
class KeyIndex {
    struct Segment;

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
        return directory_.capacity() * sizeof(Segment*) + segments_.bytes() + segments_.size() * sizeof(Segment);
    }

    /// The slot with that hash for which `equal(slot)` is true, or no_slot.
    template <class Equal>
    [[nodiscard]] Slot find(Hash hash, Equal&& equal) const {
        if (directory_.empty()) return no_slot;
        return find_in(segment_of(hash), hash, equal);
    }

    /// The key of `slot` must not be there yet. std::length_error if too many keys have the same upper bits.
    void insert(Hash hash, Slot slot) {
        if (directory_.empty()) make_first_segment();
        while (segment_of(hash).count == max_load) split(hash);
        Segment& segment = segment_of(hash);
        put(segment, hash, slot);
        ++size_;
    }

    void erase(Hash hash, Slot slot) noexcept {
        Segment& segment = segment_of(hash);
        auto& groups = segment.groups;
        auto [hole, place] = position_of(segment, hash, slot);
        // While the hole is in a full group, those that had to go on to a later one may now come back.
        bool was_full = places_with(groups[hole].slots, no_slot) == 0;
        groups[hole].slots[place] = no_slot;
        for (std::size_t at = next(hole); was_full; at = next(at)) {
            Group& group = groups[at];
            was_full = places_with(group.slots, no_slot) == 0;
            for (std::size_t from = 0; from < places_in_group; ++from) {
                if (group.slots[from] == no_slot) continue;
                if (distance(home(group.hashes[from]), at) < distance(hole, at)) continue;
                groups[hole].hashes[place] = group.hashes[from];
                groups[hole].slots[place] = group.slots[from];
                group.slots[from] = no_slot;
                hole = at;
                place = from;
                break;
            }
        }
        --segment.count;
        --size_;
    }

    /// Makes the key of `old_slot` one of `new_slot`.
    void replace(Hash hash, Slot old_slot, Slot new_slot) noexcept {
        Segment& segment = segment_of(hash);
        const auto [at, place] = position_of(segment, hash, old_slot);
        segment.groups[at].slots[place] = new_slot;
    }

    /// A search for `hash` will follow soon.
    void prefetch(Hash hash) const noexcept { (void)probe(hash); }
    /// A search for a hash that has begun: what it needs is being fetched. Good until the index changes.
    struct Probe {
        const Segment* segment;  // null if there is none yet
        Hash hash;
    };
    [[nodiscard]] Probe probe(Hash hash) const noexcept {
        if (directory_.empty()) return {nullptr, hash};
        const Segment& segment = segment_of(hash);
        vigil::prefetch(&segment.groups[home(hash)]);
        return {&segment, hash};
    }
    /// Where that search will probably end; or no_slot.
    [[nodiscard]] static Slot guess(const Probe& probe) noexcept {
        if (probe.segment == nullptr) return no_slot;
        return find_in(*probe.segment, probe.hash, [](Slot) { return true; });
    }

    /// `hash_of(slot)` gives the hash that the slot was inserted with.
    template <class HashOf>
    [[nodiscard]] bool check(HashOf&& hash_of) const {
        if (directory_.size() != (directory_.empty() ? 0 : std::size_t{1} << depth_)) return false;
        std::size_t counted = 0;
        for (std::size_t prefix = 0; prefix < directory_.size(); ++prefix) {
            const Segment& segment = *directory_[prefix];
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
    static constexpr std::size_t places_in_group = 8;
    static constexpr std::size_t groups_in_segment = 64;
    static constexpr std::uint32_t max_load = 416;  // of 512
    static constexpr std::uint32_t hash_bits = 32;
    static constexpr int home_bits = 6;
    static_assert(1 << home_bits == groups_in_segment);

    struct alignas(64) Group {
        std::array<Hash, places_in_group> hashes;
        std::array<Slot, places_in_group> slots;

        Group() noexcept {
            hashes.fill(0);
            slots.fill(no_slot);
        }
    };
    struct Segment {
        std::array<Group, groups_in_segment> groups;
        std::uint32_t count = 0;
        std::uint32_t depth = 0;  // how many of the upper bits its hashes have in common
    };

    static std::size_t home(Hash hash) noexcept { return hash % groups_in_segment; }
    static std::size_t next(std::size_t at) noexcept { return (at + 1) % groups_in_segment; }
    static std::size_t distance(std::size_t from, std::size_t to) noexcept { return (to - from) % groups_in_segment; }

    /// A bit for each place whose value is `wanted`: without branches, of which half would be guessed wrong.
    static unsigned places_with(const std::array<std::uint32_t, places_in_group>& values,
                                std::uint32_t wanted) noexcept {
#ifdef __SSE2__
        using Four [[gnu::vector_size(16)]] = std::uint32_t;
        using FourFloats [[gnu::vector_size(16)]] = float;
        const auto among_four = [&](const std::uint32_t* from) {
            Four four;
            std::memcpy(&four, from, sizeof four);
            return static_cast<unsigned>(__builtin_ia32_movmskps(reinterpret_cast<FourFloats>(four == wanted)));
        };
        return among_four(values.data()) | among_four(values.data() + 4) << 4;
#else
        unsigned found = 0;
        for (unsigned place = 0; place < places_in_group; ++place) {
            found |= static_cast<unsigned>(values[place] == wanted) << place;
        }
        return found;
#endif
    }
    static std::size_t first_of(unsigned places) noexcept { return static_cast<std::size_t>(std::countr_zero(places)); }

    [[nodiscard]] std::size_t prefix_of(Hash hash) const noexcept {
        return std::uint64_t{hash} >> (hash_bits - depth_);
    }
    [[nodiscard]] Segment& segment_of(Hash hash) noexcept { return *directory_[prefix_of(hash)]; }
    [[nodiscard]] const Segment& segment_of(Hash hash) const noexcept { return *directory_[prefix_of(hash)]; }

    template <class Equal>
    static Slot find_in(const Segment& segment, Hash hash, Equal&& equal) {
        for (std::size_t at = home(hash);; at = next(at)) {
            const Group& group = segment.groups[at];
            for (unsigned same = places_with(group.hashes, hash); same != 0; same &= same - 1) {
                const Slot slot = group.slots[first_of(same)];
                if (slot != no_slot && equal(slot)) return slot;
            }
            if (places_with(group.slots, no_slot) != 0) return no_slot;
        }
    }
    static void put(Segment& segment, Hash hash, Slot slot) noexcept {
        for (std::size_t at = home(hash);; at = next(at)) {
            Group& group = segment.groups[at];
            const unsigned empty = places_with(group.slots, no_slot);
            if (empty == 0) continue;
            group.hashes[first_of(empty)] = hash;
            group.slots[first_of(empty)] = slot;
            ++segment.count;
            return;
        }
    }
    struct Position {
        std::size_t group;
        std::size_t place;
    };
    static Position position_of(const Segment& segment, Hash hash, Slot slot) noexcept {
        for (std::size_t at = home(hash);; at = next(at)) {
            const unsigned found = places_with(segment.groups[at].slots, slot);
            if (found != 0) return {at, first_of(found)};
            assert(places_with(segment.groups[at].slots, no_slot) == 0);
        }
    }

    Segment* new_segment() {
        segments_.emplace_back(std::make_unique<Segment>());
        return segments_.back().get();
    }
    void make_first_segment() {
        if (segments_.empty()) new_segment();
        directory_.push_back(segments_[0].get());
    }

    /// Splits the segment of `hash` by the next bit. It may be that all of them go to one side.
    void split(Hash hash) {
        if (segment_of(hash).depth == depth_) double_directory();
        Segment& upper = *new_segment();
        Segment& lower = segment_of(hash);
        const Segment old = lower;
        const auto depth = old.depth + 1;
        lower = {};
        lower.depth = upper.depth = depth;
        for (const Group& group : old.groups) {
            for (std::size_t place = 0; place < places_in_group; ++place) {
                if (group.slots[place] == no_slot) continue;
                const bool above = (group.hashes[place] >> (hash_bits - depth) & 1) != 0;
                put(above ? upper : lower, group.hashes[place], group.slots[place]);
            }
        }

        const std::size_t covered = std::size_t{1} << (depth_ - depth);
        const std::size_t upper_first = (prefix_of(hash) & ~(2 * covered - 1)) + covered;
        std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(upper_first), covered, &upper);
    }

    void double_directory() {
        // Hashes that are any good never make it so sparse.
        if (directory_.size() >= std::max<std::size_t>(64 * segments_.size(), 1 << 16)) {
            throw std::length_error("KeyIndex: too many keys with one hash");
        }
        std::vector<Segment*> doubled(directory_.size() * 2);
        for (std::size_t prefix = 0; prefix < doubled.size(); ++prefix) doubled[prefix] = directory_[prefix / 2];
        directory_ = std::move(doubled);
        ++depth_;
    }

    template <class HashOf>
    [[nodiscard]] bool check_segment(const Segment& segment, std::size_t first, std::size_t end,
                                     HashOf& hash_of) const {
        const auto& groups = segment.groups;
        std::uint32_t counted = 0;
        for (std::size_t at = 0; at < groups.size(); ++at) {
            for (std::size_t place = 0; place < places_in_group; ++place) {
                if (groups[at].slots[place] == no_slot) continue;
                ++counted;
                const Hash hash = groups[at].hashes[place];
                if (prefix_of(hash) < first || prefix_of(hash) >= end) return false;
                if (hash_of(groups[at].slots[place]) != hash) return false;
                for (std::size_t before = home(hash); before != at; before = next(before)) {
                    if (places_with(groups[before].slots, no_slot) != 0) return false;
                }
            }
        }
        return counted == segment.count && counted <= max_load;
    }

    std::vector<Segment*> directory_;  // 1 << depth_ of them, or none
    PagedArray<std::unique_ptr<Segment>> segments_;
    std::uint32_t depth_ = 0;
    std::size_t size_ = 0;
};

}  // namespace vigil
