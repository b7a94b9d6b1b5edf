#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Puts small plain entries in order, of which many come at once: they are gathered in runs of up to a page, each is
/// sorted when it is closed (which costs nothing if they come in order), and a min-heap merges the runs. Faster than a
/// heap of all, and no call takes longer than sorting a page.
///
/// Invariants: each run is in order; the heap knows the first of each; size() counts all, those of the open run too.
/// push and pop are O(log n) in the number of runs; close() O(n log n) in the length of one, at most a page. Only
/// reserve_more() throws, and what was not reserved for.
template <class Entry>
class SortedRuns {
    static_assert(std::is_trivially_copyable_v<Entry>);

   public:
    /// Whether nothing is to be seen: those of the open run are not.
    [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return entries_.bytes() + heads_.bytes(); }
    [[nodiscard]] const Entry& top() const noexcept { return heads_.top().entry; }

    /// The least of the open run; null if that is empty.
    [[nodiscard]] const Entry* least_of_open_run() const noexcept {
        return start_ == entries_.size() ? nullptr : &least_;
    }

    /// After this the next `count` calls of push() and gather(), and the close() after them, cannot fail.
    void reserve_more(std::size_t count) {
        entries_.reserve_more(count);
        heads_.reserve_more(count + 1);
    }

    /// Adds one to the open run: it is not seen before close().
    void gather(const Entry& entry) {
        if (entries_.size() % Entries::page_size == 0) close();
        if (entries_.size() == start_) {
            least_ = entry;
        } else {
            in_order_ = in_order_ && !(entry < entries_.back());
            if (!in_order_ && entry < least_) least_ = entry;
        }
        entries_.emplace_back(entry);
        ++size_;
    }
    void close() {
        const std::size_t end = entries_.size();
        if (start_ == end) return;
        Entry* first = &entries_[start_];
        if (!in_order_) std::sort(first, first + (end - start_));
        heads_.push({*first, start_ + 1, end});
        start_ = end;
        in_order_ = true;
    }

    /// Adds one, which is seen at once.
    void push(const Entry& entry) {
        heads_.push({entry, 0, 0});
        ++size_;
    }

    void pop() noexcept {
        Head head = heads_.top();
        --size_;
        if (head.next == head.end) {
            heads_.pop();
            if (heads_.empty() && start_ == entries_.size()) {
                entries_.shrink_to(0);
                start_ = 0;
            }
        } else {
            head.entry = entries_[head.next++];
            heads_.replace(0, head);
        }
    }

    /// Drops all but those of which `wanted(entry)` is true, and closes the open run. O(n log n). Leaves everything as
    /// it was if memory runs out.
    template <class Wanted>
    void keep(Wanted&& wanted) {
        SortedRuns kept;
        each([&](const Entry& entry) {
            if (wanted(entry)) kept.gather(entry);
        });
        kept.close();
        *this = std::move(kept);
    }

    template <class Visit>
    void each(Visit&& visit) const {
        for (std::size_t index = 0; index < heads_.size(); ++index) {
            visit(heads_[index].entry);
            for (std::size_t next = heads_[index].next; next < heads_[index].end; ++next) visit(entries_[next]);
        }
        for (std::size_t index = start_; index < entries_.size(); ++index) visit(entries_[index]);
    }

    [[nodiscard]] bool check() const {
        std::size_t counted = 0;
        for (std::size_t index = 0; index < heads_.size(); ++index) {
            const Head& head = heads_[index];
            counted += 1 + head.end - head.next;
            const Entry* last = &head.entry;
            for (std::size_t next = head.next; next < head.end; last = &entries_[next++]) {
                if (entries_[next] < *last) return false;
            }
        }
        for (std::size_t index = start_; index < entries_.size(); ++index) {
            if (entries_[index] < least_) return false;
        }
        return heads_.check() && start_ <= entries_.size() && counted + entries_.size() - start_ == size_;
    }

   private:
    using Entries = PagedArray<Entry>;

    struct Head {
        Entry entry;
        std::size_t next, end;  // where the rest of its run lies

        bool operator<(const Head& other) const noexcept { return entry < other.entry; }
    };

    MinHeap<Head> heads_;
    Entries entries_;
    std::size_t size_ = 0;
    std::size_t start_ = 0;  // of the open run
    bool in_order_ = true;   // whether the open run is
    Entry least_{};          // of the open run
};

}  // namespace vigil
