#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>
#include <vigil/queue/heap.hpp>

namespace vigil {

/// Puts small plain entries in order, of which many come at once: they are gathered in runs of up to a page, each is
/// sorted when it is closed (which costs nothing if they come in order), and a min-heap merges the runs. Faster than a
/// heap of all, and no call takes longer than sorting two pages.
///
/// Invariants: each run is in order and lies in one page, except for its first entry, which the heap holds; a page has
/// counted what is left in it, and is free if that is nothing and it is not the one that is being filled; size() counts
/// all, those of the open run too. push and pop are O(log n) in the number of runs; close() O(n log n) in the length of
/// one. Only reserve_more() throws, and what was not reserved for.
template <class Entry>
class SortedRuns {
    static_assert(std::is_trivially_copyable_v<Entry>);

   public:
    static constexpr std::size_t page_size = 512;

    SortedRuns() noexcept = default;
    SortedRuns(SortedRuns&& other) noexcept { *this = std::move(other); }
    SortedRuns& operator=(SortedRuns&& other) noexcept {
        std::swap(heads_, other.heads_);
        std::swap(pages_, other.pages_);
        std::swap(free_pages_, other.free_pages_);
        std::swap(size_, other.size_);
        std::swap(open_, other.open_);
        std::swap(swept_, other.swept_);
        return *this;
    }
    ~SortedRuns() = default;

    /// Whether nothing is to be seen: those of the open run are not.
    [[nodiscard]] bool empty() const noexcept { return heads_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return heads_.bytes() + pages_.size() * sizeof(Page) + pages_.capacity() * sizeof(pages_[0]) +
               free_pages_.capacity() * sizeof(PageNumber);
    }
    [[nodiscard]] const Entry& top() const noexcept { return heads_.top().entry; }

    [[nodiscard]] std::size_t size_of_open_run() const noexcept { return open_.end - open_.start; }
    /// The least of the open run; null if that is empty.
    [[nodiscard]] const Entry* least_of_open_run() const noexcept {
        return size_of_open_run() == 0 ? nullptr : &open_.least;
    }
    /// The least of those, seen or not, for which `wanted(entry)` is true, or null. Looks only at some of each run
    /// unless much of that is not wanted.
    template <class Wanted>
    [[nodiscard]] const Entry* least(Wanted&& wanted) const {
        const Entry* found = nullptr;
        const auto consider = [&](const Entry& entry) {
            if (found != nullptr && !(entry < *found)) return true;
            if (!wanted(entry)) return false;
            found = &entry;
            return true;
        };
        for (std::size_t index = 0; index < heads_.size(); ++index) {
            const Head& head = heads_[index];
            if (consider(head.entry)) continue;
            for (std::uint32_t next = head.next; next < head.end && !consider(entry_at(head.page, next));) ++next;
        }
        for (std::uint32_t index = open_.start; index < open_.end; ++index) consider(entry_at(open_.page, index));
        return found;
    }

    /// After this the next `count` calls of push() and gather(), and the close() after them, cannot fail; pop() and
    /// sweep() end that.
    void reserve_more(std::size_t count) {
        heads_.reserve_more(count + 1);
        reserve_pages_for(count);
    }

    /// Adds one to the open run: it is not seen before close().
    void gather(const Entry& entry) {
        if (pages_.empty() || open_.end == page_size) begin_page();
        if (size_of_open_run() == 0) {
            open_.least = entry;
            open_.in_order = true;
        } else {
            open_.in_order = open_.in_order && !(entry < entry_at(open_.page, open_.end - 1));
            if (!open_.in_order && entry < open_.least) open_.least = entry;
        }
        Page& page = *pages_[open_.page];
        page.entries[open_.end++] = entry;
        ++page.left;
        ++size_;
    }
    void close() {
        if (size_of_open_run() == 0) return;
        Page& page = *pages_[open_.page];
        Entry* first = page.entries.data() + open_.start;
        if (!open_.in_order) std::sort(first, page.entries.data() + open_.end);
        heads_.push({*first, open_.page, open_.start + 1, open_.end});
        open_.start = open_.end;
        drop_from(open_.page, 1);
    }

    /// Adds one, which is seen at once.
    void push(const Entry& entry) {
        heads_.push({entry, 0, 0, 0});
        ++size_;
    }

    void pop() noexcept {
        Head head = heads_.top();
        --size_;
        if (head.next == head.end) {
            heads_.pop();
            if (size_ == 0) forget_pages();
        } else {
            head.entry = entry_at(head.page, head.next++);
            heads_.replace(0, head);
            drop_from(head.page, 1);
        }
    }

    /// Closes the open run and drops those of which `wanted(entry)` is false from some runs; from call to call it goes
    /// through all of them. Looks at a page of entries, or somewhat more. Does nothing if memory runs out.
    template <class Wanted>
    void sweep(Wanted&& wanted) noexcept {
        try {
            heads_.reserve_more(4);  // what is gathered here begins in the page at hand and needs two more at most
            reserve_pages_for(2 * page_size);
        } catch (const std::bad_alloc&) {
            return;
        }
        close();
        for (std::size_t looked_at = 0; looked_at < page_size && !heads_.empty();) {
            if (swept_ == 0 || swept_ > heads_.size()) swept_ = heads_.size();
            const Head head = heads_[--swept_];
            heads_.remove(swept_);
            const std::uint32_t rest = head.end - head.next;
            looked_at += 1 + rest;
            size_ -= 1 + rest;
            if (wanted(head.entry)) gather(head.entry);
            for (std::uint32_t next = head.next; next < head.end; ++next) {
                const Entry entry = entry_at(head.page, next);
                if (wanted(entry)) gather(entry);
            }
            if (rest > 0) drop_from(head.page, rest);
        }
        close();
        if (size_ == 0) forget_pages();
    }

    template <class Visit>
    void each(Visit&& visit) const {
        for (std::size_t index = 0; index < heads_.size(); ++index) {
            const Head& head = heads_[index];
            visit(head.entry);
            for (std::uint32_t next = head.next; next < head.end; ++next) visit(entry_at(head.page, next));
        }
        for (std::uint32_t index = open_.start; index < open_.end; ++index) visit(entry_at(open_.page, index));
    }

    [[nodiscard]] bool check() const {
        std::size_t counted = 0;
        each([&](const Entry&) { ++counted; });
        std::vector<std::size_t> left(pages_.size());
        for (std::size_t index = 0; index < heads_.size(); ++index) {
            const Head& head = heads_[index];
            const Entry* last = &head.entry;
            for (std::uint32_t next = head.next; next < head.end; last = &entry_at(head.page, next++)) {
                if (entry_at(head.page, next) < *last) return false;
                ++left[head.page];
            }
        }
        for (std::uint32_t index = open_.start; index < open_.end; ++index) {
            if (entry_at(open_.page, index) < open_.least) return false;
            ++left[open_.page];
        }
        std::size_t free = 0;
        for (std::size_t page = 0; page < pages_.size(); ++page) {
            if (pages_[page]->left != left[page]) return false;
            if (left[page] == 0 && page != open_.page) ++free;
        }
        for (const PageNumber page : free_pages_) {
            if (left[page] != 0 || page == open_.page) return false;
        }
        return counted == size_ && free == free_pages_.size() && heads_.check();
    }

   private:
    using PageNumber = std::uint32_t;

    struct Page {
        std::array<Entry, page_size> entries;
        std::uint32_t left = 0;
    };
    struct Head {
        Entry entry;
        PageNumber page;
        std::uint32_t next, end;  // where the rest of its run lies

        bool operator<(const Head& other) const noexcept { return entry < other.entry; }
    };
    struct OpenRun {
        PageNumber page = 0;  // the one that is being filled, if there are any
        std::uint32_t start = 0, end = 0;
        bool in_order = true;
        Entry least{};
    };

    [[nodiscard]] const Entry& entry_at(PageNumber page, std::uint32_t index) const noexcept {
        return pages_[page]->entries[index];
    }

    void reserve_pages_for(std::size_t count) {
        if (pages_.empty()) add_page();
        while (page_size - open_.end + free_pages_.size() * page_size < count) add_page();
    }
    void add_page() {
        // What is reserved stays, so that one allocation after the other may succeed.
        if (pages_.size() == pages_.capacity()) pages_.reserve(2 * pages_.size() + 4);
        free_pages_.reserve(pages_.capacity());  // so that every page can be given back
        auto page = std::unique_ptr<Page>(new Page);
        if (pages_.empty()) {
            open_ = {};
        } else {
            free_pages_.push_back(static_cast<PageNumber>(pages_.size()));
        }
        pages_.push_back(std::move(page));
    }
    /// The open run goes on in another page, as another run.
    void begin_page() {
        if (pages_.empty()) return add_page();
        close();
        if (open_.end < page_size) return;  // nothing was left in it
        if (free_pages_.empty()) add_page();
        open_.page = free_pages_.back();
        free_pages_.pop_back();
        open_.start = open_.end = 0;
    }
    void drop_from(PageNumber number, std::uint32_t count) noexcept {
        Page& page = *pages_[number];
        page.left -= count;
        if (page.left > 0) return;
        if (number != open_.page) {
            free_pages_.push_back(number);
        } else {
            open_.start = open_.end = 0;
        }
    }
    /// All but one.
    void forget_pages() noexcept {
        if (pages_.empty()) return;
        pages_.resize(1);
        free_pages_.clear();
        open_ = {};
    }

    MinHeap<Head> heads_;
    std::vector<std::unique_ptr<Page>> pages_;
    std::vector<PageNumber> free_pages_;
    std::size_t size_ = 0;
    OpenRun open_;
    // The runs from there on; when they change places, some have to wait for the next round.
    std::size_t swept_ = 0;
};

}  // namespace vigil
