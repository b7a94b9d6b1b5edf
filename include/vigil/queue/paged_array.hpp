#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace vigil {

/// An array that grows and shrinks at its end, a page at a time: growing copies nothing, so no single call is slow
/// however large it is, and an element keeps its address for life.
///
/// Invariants: the pages hold size() elements, the last of them partly; at most one page is spare. Elements must be
/// nothrow movable. push_back() is O(1) and leaves the array as it was if memory runs out; all else never throws.
template <class T, std::size_t PageBytes = 16 * 1024>
class PagedArray {
   public:
    static constexpr std::size_t page_size = std::bit_floor(PageBytes / sizeof(T));
    static_assert(page_size >= 4 && std::is_nothrow_move_constructible_v<T>);

    PagedArray() noexcept = default;
    PagedArray(PagedArray&& other) noexcept
        : pages_(std::move(other.pages_)), size_(std::exchange(other.size_, 0)) {
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

    /// After this the next push_back() cannot fail.
    void reserve_one() {
        if (size_ < pages_.size() * page_size) return;
        if (pages_.size() == pages_.capacity()) pages_.reserve(pages_.size() * 2 + 1);
        pages_.push_back(std::allocator<T>{}.allocate(page_size));
    }

    T& push_back(T value) {
        reserve_one();
        T* at = pages_[size_ / page_size] + size_ % page_size;
        std::construct_at(at, std::move(value));
        ++size_;
        return *at;
    }

    void pop_back() noexcept {
        assert(size_ > 0);
        std::destroy_at(&back());
        --size_;
        if (pages_.size() * page_size - size_ == 2 * page_size) free_last_page();
    }

    void clear() noexcept {
        if constexpr (std::is_trivially_destructible_v<T>) {
            size_ = 0;
        } else {
            while (size_ > 0) pop_back();
        }
        while (!pages_.empty()) free_last_page();
        pages_ = {};
    }

   private:
    void free_last_page() noexcept {
        std::allocator<T>{}.deallocate(pages_.back(), page_size);
        pages_.pop_back();
    }

    std::vector<T*> pages_;
    std::size_t size_ = 0;
};

}  // namespace vigil
