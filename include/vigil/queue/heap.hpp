#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// For a heap whose owner does not care where an entry stands.
struct Untracked {
    template <class Entry>
    void operator()(const Entry&, std::size_t) const noexcept {}
};

/// A 4-ary min-heap of small plain entries, ordered by their `<`. Half as deep as a binary heap, and the children of
/// an entry lie side by side.
///
/// Every call that moves entries takes an optional `moved(entry, index)`, called for each entry that it puts somewhere
/// new: an owner that keeps those indexes can remove any entry, not just the top one.
///
/// Invariants: no entry is less than its parent. push and remove are O(log4 n), top is O(1). Growing copies nothing.
template <class Entry>
class MinHeap {
    static_assert(std::is_trivially_copyable_v<Entry>);

   public:
    [[nodiscard]] bool empty() const noexcept { return entries_.size() <= padding; }
    [[nodiscard]] std::size_t size() const noexcept { return empty() ? 0 : entries_.size() - padding; }
    [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes(); }

    [[nodiscard]] const Entry& top() const noexcept { return at(0); }
    [[nodiscard]] const Entry& operator[](std::size_t index) const noexcept { return at(index); }

    /// After this the next `count` calls of push() cannot fail.
    void reserve_more(std::size_t count) {
        while (entries_.size() < padding) entries_.emplace_back();
        entries_.reserve_more(count);
    }

    template <class Moved = Untracked>
    void push(const Entry& entry, Moved&& moved = {}) {
        reserve_more(1);
        entries_.emplace_back(entry);
        sift_up(size() - 1, entry, moved);
    }

    template <class Moved = Untracked>
    void pop(Moved&& moved = {}) noexcept {
        remove(0, moved);
    }

    template <class Moved = Untracked>
    void remove(std::size_t index, Moved&& moved = {}) noexcept {
        assert(index < size());
        const Entry last = at(size() - 1);
        entries_.pop_back();
        if (index < size()) replace(index, last, moved);
    }

    /// Puts `entry` in the place of the one at `index`, then where it belongs.
    template <class Moved = Untracked>
    void replace(std::size_t index, const Entry& entry, Moved&& moved = {}) noexcept {
        if (index > 0 && entry < at(parent(index))) {
            sift_up(index, entry, moved);
        } else {
            sift_down(index, entry, moved);
        }
    }

    void clear() noexcept { entries_.clear(); }

    [[nodiscard]] bool check() const {
        for (std::size_t index = 1; index < size(); ++index) {
            if (at(index) < at(parent(index))) return false;
        }
        return true;
    }

   private:
    // Three unused entries in front make the children of every entry one aligned group, which never spans two pages.
    static constexpr std::size_t arity = 4;
    static constexpr std::size_t padding = arity - 1;

    static std::size_t parent(std::size_t index) noexcept { return (index - 1) / arity; }
    static std::size_t first_child(std::size_t index) noexcept { return index * arity + 1; }

    Entry& at(std::size_t index) noexcept { return entries_[index + padding]; }
    const Entry& at(std::size_t index) const noexcept { return entries_[index + padding]; }

    template <class Moved>
    void put(std::size_t index, const Entry& entry, Moved& moved) noexcept {
        at(index) = entry;
        moved(entry, index);
    }

    template <class Moved>
    void sift_up(std::size_t index, const Entry entry, Moved& moved) noexcept {
        while (index > 0 && entry < at(parent(index))) {
            put(index, at(parent(index)), moved);
            index = parent(index);
        }
        put(index, entry, moved);
    }

    template <class Moved>
    void sift_down(std::size_t index, const Entry entry, Moved& moved) noexcept {
        const std::size_t count = size();
        for (std::size_t child = first_child(index); child < count; child = first_child(index)) {
            const Entry* group = &at(child);
            const std::size_t least = least_of(group, std::min(arity, count - child));
            if (!(group[least] < entry)) break;
            put(index, group[least], moved);
            index = child + least;
        }
        put(index, entry, moved);
    }

    static std::size_t least_of(const Entry* group, std::size_t siblings) noexcept {
        if (siblings == arity) {
            const std::size_t left = group[1] < group[0] ? 1 : 0;
            const std::size_t right = group[3] < group[2] ? 3 : 2;
            return group[right] < group[left] ? right : left;
        }
        std::size_t least = 0;
        for (std::size_t sibling = 1; sibling < siblings; ++sibling) {
            if (group[sibling] < group[least]) least = sibling;
        }
        return least;
    }

    PagedArray<Entry> entries_;
};

}  // namespace vigil
