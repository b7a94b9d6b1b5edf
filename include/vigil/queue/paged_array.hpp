#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace vigil {

/// An array that grows and shrinks at its end, a page at a time: growing copies nothing, so no single call is slow
/// however large it is, and an element keeps its address for life.
///
/// Invariants: the pages hold size() elements, the last of them partly; at most one page is spare, unless reserved.
/// emplace_back() is O(1) and leaves the array as it was if memory runs out; all else never throws.
template <class T, std::size_t PageBytes = 16 * 1024>
class PagedArray {
   public:
    static constexpr std::size_t page_size = std::bit_floor(PageBytes / sizeof(T));
    static_assert(page_size >= 4);

    PagedArray() noexcept = default;
    PagedArray(PagedArray&& other) noexcept : pages_(std::move(other.pages_)), size_(std::exchange(other.size_, 0)) {
        other.pages_.clear();
    }
    PagedArray& operator=(PagedArray&& other) noexcept {
        std::swap(pages_, other.pages_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~PagedArray() { clear(); }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return pages_.size() * page_size * sizeof(T) + pages_.capacity() * sizeof(T*);
    }

    T& operator[](std::size_t index) noexcept {
        assert(index < size_);
        return pages_[index / page_size][index % page_size];
    }
    const T& operator[](std::size_t index) const noexcept {
        assert(index < size_);
        return pages_[index / page_size][index % page_size];
    }
    T& back() noexcept { return (*this)[size_ - 1]; }

    /// After this the next `count` calls of emplace_back() cannot fail for lack of memory.
    void reserve_more(std::size_t count) {
        while (pages_.size() * page_size - size_ < count) {
            if (pages_.size() == pages_.capacity()) pages_.reserve(pages_.size() * 2 + 1);
            pages_.push_back(static_cast<T*>(::operator new(page_size * sizeof(T), alignment)));
        }
    }

    template <class... Args>
    T& emplace_back(Args&&... args) {
        reserve_more(1);
        T* at = std::construct_at(pages_[size_ / page_size] + size_ % page_size, std::forward<Args>(args)...);
        ++size_;
        return *at;
    }

    void pop_back() noexcept {
        assert(size_ > 0);
        std::destroy_at(&back());
        --size_;
        if (pages_.size() * page_size - size_ == 2 * page_size) free_last_page();
    }

    /// As pop_back() until `size` are left, but O(1) for each page.
    void shrink_to(std::size_t size) noexcept requires std::is_trivially_destructible_v<T> {
        assert(size <= size_);
        size_ = size;
        while (pages_.size() * page_size - size_ >= 2 * page_size) free_last_page();
    }

    void clear() noexcept {
        if constexpr (std::is_trivially_destructible_v<T>) {
            size_ = 0;
        } else {
            while (size_ > 0) pop_back();
        }
        while (!pages_.empty()) free_last_page();
        std::vector<T*>().swap(pages_);
    }

   private:
    // A cache line: an element as large as one never touches two.
    static constexpr std::align_val_t alignment{std::max(alignof(T), std::size_t{64})};

    void free_last_page() noexcept {
        ::operator delete(pages_.back(), alignment);
        pages_.pop_back();
    }

    std::vector<T*> pages_;
    std::size_t size_ = 0;
};

}  // namespace vigil
