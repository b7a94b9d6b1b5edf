#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vigil/core/prefetch.hpp>
#include <vigil/queue/paged_array.hpp>

namespace vigil {

/// Many unordered lists of small numbers, each kept in chunks of a cache line, in memory that they share: four bytes
/// for a number and four for a list.
///
/// Invariants: each chunk is in one list or free; a chunk of a list is not empty. All calls O(1). add() leaves the
/// lists as they were if memory runs out; nothing else throws.
class SlotLists {
   public:
    using Number = std::uint32_t;
    static constexpr std::uint32_t chunk_size = 14;

    class List {
       public:
        [[nodiscard]] bool empty() const noexcept { return head_ == no_chunk; }

       private:
        friend class SlotLists;
        std::uint32_t head_ = no_chunk;
        std::uint32_t tail_ = no_chunk;  // if there is a head
    };

    struct alignas(64) Chunk {
        std::array<Number, chunk_size> numbers;
        std::uint32_t count;
        std::uint32_t next;

        [[nodiscard]] const Number* begin() const noexcept { return numbers.data(); }
        [[nodiscard]] const Number* end() const noexcept { return numbers.data() + count; }
    };

    SlotLists() noexcept = default;
    SlotLists(SlotLists&& other) noexcept { *this = std::move(other); }
    SlotLists& operator=(SlotLists&& other) noexcept {
        std::swap(chunks_, other.chunks_);
        std::swap(free_, other.free_);
        return *this;
    }
    ~SlotLists() = default;

    [[nodiscard]] std::size_t bytes() const noexcept { return chunks_.bytes(); }

    /// After this the next `count` calls of add() cannot fail.
    void reserve_more(std::size_t count) { chunks_.reserve_more(count); }

    void add(List& list, Number number) {
        if (list.empty()) {
            list.head_ = list.tail_ = new_chunk();
        } else if (chunks_[list.tail_].count == chunk_size) {
            const std::uint32_t chunk = new_chunk();
            list.tail_ = chunks_[list.tail_].next = chunk;
        }
        Chunk& chunk = chunks_[list.tail_];
        chunk.numbers[chunk.count++] = number;
    }

    /// The first ones of the list, which must not be empty; take() takes just these out.
    [[nodiscard]] const Chunk& first_of(const List& list) const noexcept { return chunks_[list.head_]; }
    /// Those that come after them; null if there are none. The ones after these are fetched.
    [[nodiscard]] const Chunk* coming_after(const Chunk& chunk) const noexcept {
        if (chunk.next == no_chunk) return nullptr;
        const Chunk& coming = chunks_[chunk.next];
        if (coming.next != no_chunk) prefetch(&chunks_[coming.next]);
        return &coming;
    }
    void take(List& list) noexcept { remove(list.head_); }

    /// Walks through a list a chunk at a time, and drops what is not wanted. A walk ends when numbers are taken from
    /// its list; adding does not disturb it.
    class Walk {
       public:
        explicit Walk(List& list) noexcept : list_(&list) {}
        [[nodiscard]] bool is_in(const List& list) const noexcept { return list_ == &list; }

       private:
        friend class SlotLists;
        List* list_;
        std::uint32_t before_ = no_chunk;  // the chunk that was last looked at
    };
    /// False at the end of the list.
    template <class Wanted>
    bool filter_next(Walk& walk, std::size_t& dropped, Wanted&& wanted) noexcept {
        std::uint32_t& link = walk.before_ == no_chunk ? walk.list_->head_ : chunks_[walk.before_].next;
        if (link == no_chunk) return false;
        Chunk& chunk = chunks_[link];
        std::uint32_t kept = 0;
        for (std::uint32_t index = 0; index < chunk.count; ++index) {
            if (wanted(chunk.numbers[index])) chunk.numbers[kept++] = chunk.numbers[index];
        }
        dropped += chunk.count - kept;
        chunk.count = kept;
        if (kept == 0) {
            if (walk.list_->tail_ == link) walk.list_->tail_ = walk.before_;
            remove(link);
        } else {
            walk.before_ = link;
        }
        return true;
    }

    /// Calls `visit(number)` for all of a list.
    template <class Visit>
    void each(const List& list, Visit&& visit) const {
        for (std::uint32_t chunk = list.head_; chunk != no_chunk; chunk = chunks_[chunk].next) {
            for (std::uint32_t index = 0; index < chunks_[chunk].count; ++index) visit(chunks_[chunk].numbers[index]);
        }
    }
    /// Whether those chunks that `list` and others before it have are well formed; `chunks` counts them.
    [[nodiscard]] bool check(const List& list, std::size_t& chunks) const noexcept {
        std::uint32_t last = no_chunk;
        for (std::uint32_t chunk = list.head_; chunk != no_chunk; chunk = chunks_[chunk].next) {
            if (++chunks > chunks_.size() || chunks_[chunk].count == 0 || chunks_[chunk].count > chunk_size)
                return false;
            last = chunk;
        }
        return list.empty() || list.tail_ == last;
    }
    /// Whether each chunk is in one of the lists that were counted, or free.
    [[nodiscard]] bool check_count(std::size_t chunks) const noexcept {
        for (std::uint32_t chunk = free_; chunk != no_chunk; chunk = chunks_[chunk].next) {
            if (++chunks > chunks_.size()) return false;
        }
        return chunks == chunks_.size();
    }

   private:
    static constexpr std::uint32_t no_chunk = ~std::uint32_t{0};

    std::uint32_t new_chunk() {
        std::uint32_t chunk = free_;
        if (chunk == no_chunk) {
            chunk = static_cast<std::uint32_t>(chunks_.size());
            chunks_.emplace_back();
        } else {
            free_ = chunks_[chunk].next;
        }
        chunks_[chunk].count = 0;
        chunks_[chunk].next = no_chunk;
        return chunk;
    }
    /// `link` is what points to the chunk.
    void remove(std::uint32_t& link) noexcept {
        const std::uint32_t chunk = link;
        link = chunks_[chunk].next;
        chunks_[chunk].next = std::exchange(free_, chunk);
    }

    PagedArray<Chunk> chunks_;
    std::uint32_t free_ = no_chunk;
};

}  // namespace vigil
