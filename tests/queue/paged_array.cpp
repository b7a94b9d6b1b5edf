#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/queue/paged_array.hpp>

#include "failing_allocator.hpp"

using vigil::PagedArray;
using vigil::testing::AllocationsFailAfter;

namespace {

using Array = PagedArray<std::uint64_t, 128>;
constexpr std::size_t page_size = Array::page_size;
constexpr std::size_t page_bytes = page_size * sizeof(std::uint64_t);

template <class Numbers>
void fill(Numbers& array, std::size_t size) {
    while (array.size() < size) array.emplace_back(array.size());
}

bool holds_its_indexes(const Array& array) {
    for (std::size_t index = 0; index < array.size(); ++index) {
        if (array[index] != index) return false;
    }
    return true;
}

/// False if memory ran out.
template <class Numbers>
bool grows(Numbers& array, std::size_t allowed_allocations) {
    try {
        const AllocationsFailAfter limited{allowed_allocations};
        array.emplace_back(array.size());
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

TEST_CASE("A page of a PagedArray holds a power of two of elements") {
    STATIC_REQUIRE(PagedArray<std::uint64_t, 128>::page_size == 16);
    STATIC_REQUIRE(PagedArray<char[24], 16 * 1024>::page_size == 512);
    STATIC_REQUIRE(PagedArray<char[64], 16 * 1024>::page_size == 256);
}

TEST_CASE("An element of a PagedArray keeps its address for life") {
    Array array;
    std::vector<const std::uint64_t*> addresses;
    for (std::uint64_t number = 0; number < 100 * page_size; ++number) {
        addresses.push_back(&array.emplace_back(number));
    }
    while (array.size() > 50 * page_size) array.pop_back();
    fill(array, 200 * page_size);
    bool stayed = true;
    for (std::size_t index = 0; index < 50 * page_size; ++index) stayed = stayed && addresses[index] == &array[index];
    REQUIRE(stayed);
    REQUIRE(holds_its_indexes(array));
    REQUIRE(array.back() == 200 * page_size - 1);
}

TEST_CASE("An empty PagedArray holds no memory") {
    const Array array;
    REQUIRE(array.empty());
    REQUIRE(array.bytes() == 0);
}

TEST_CASE("A PagedArray frees its pages when it shrinks, all but one spare") {
    Array array;
    fill(array, 10 * page_size);
    const auto full = array.bytes();
    bool one_spare = true;
    while (!array.empty()) {
        array.pop_back();
        const auto freed_pages = (full - array.bytes()) / page_bytes;
        const auto spare = (10 - freed_pages) * page_size - array.size();
        one_spare = one_spare && spare < 2 * page_size;
    }
    REQUIRE(one_spare);
    REQUIRE(full - array.bytes() == 9 * page_bytes);
}

TEST_CASE("A PagedArray that goes back and forth over the edge of a page allocates nothing") {
    Array array;
    fill(array, 3 * page_size + 1);
    const auto go_back_and_forth = [&] {
        const AllocationsFailAfter none{0};
        for (int round = 0; round < 100; ++round) {
            while (array.size() > 2 * page_size + 1) array.pop_back();
            fill(array, 3 * page_size + 1);
        }
    };
    REQUIRE_NOTHROW(go_back_and_forth());
}

TEST_CASE("A cleared PagedArray holds no memory and can be used again") {
    Array array;
    fill(array, 10 * page_size + 3);
    array.clear();
    REQUIRE(array.empty());
    fill(array, 2 * page_size);
    REQUIRE(holds_its_indexes(array));
    array.clear();
    REQUIRE(array.bytes() == 0);
}

TEST_CASE("A PagedArray destroys its elements when they go") {
    const auto element = std::make_shared<int>(7);
    PagedArray<std::shared_ptr<int>, 128> array;
    const auto refill = [&] {
        while (array.size() < 100) array.emplace_back(element);
    };
    refill();
    REQUIRE(element.use_count() == 101);
    array.pop_back();
    REQUIRE(element.use_count() == 100);
    array.clear();
    REQUIRE(element.use_count() == 1);
    refill();
    {
        const auto moved = std::move(array);
        REQUIRE(element.use_count() == 101);
    }
    REQUIRE(element.use_count() == 1);
}

TEST_CASE("A PagedArray that is moved takes its elements along and leaves an empty one") {
    Array array;
    fill(array, 5 * page_size + 1);
    const auto* address = &array[page_size];
    Array moved(std::move(array));
    REQUIRE(moved.size() == 5 * page_size + 1);
    REQUIRE(&moved[page_size] == address);
    REQUIRE(array.empty());
    REQUIRE(array.bytes() == 0);

    fill(array, 3);
    array = std::move(moved);
    REQUIRE(&array[page_size] == address);
    REQUIRE(array.size() == 5 * page_size + 1);
    REQUIRE(holds_its_indexes(array));
    fill(array, 9 * page_size);
    REQUIRE(holds_its_indexes(array));
}

TEST_CASE("A PagedArray is as it was when memory runs out") {
    Array array;
    std::size_t failures = 0;
    for (std::size_t target = 1; target <= 20 * page_size; ++target) {
        for (std::size_t allowed = 0; !grows(array, allowed); ++allowed, ++failures) {
            if (array.size() != target - 1 || !holds_its_indexes(array)) FAIL("changed at " << target);
        }
        if (array.size() != target) FAIL("did not grow to " << target);
    }
    REQUIRE(failures >= 20);
    REQUIRE(holds_its_indexes(array));
}

TEST_CASE("A PagedArray is as it was when an element cannot be made") {
    struct Picky {
        explicit Picky(bool fails) {
            if (fails) throw std::runtime_error("no");
        }
        std::shared_ptr<int> resource = std::make_shared<int>(7);
    };
    PagedArray<Picky, 128> array;
    for (int count = 0; count < 100; ++count) {
        REQUIRE_THROWS_AS(array.emplace_back(true), std::runtime_error);
        REQUIRE(array.size() == static_cast<std::size_t>(count));
        array.emplace_back(false);
    }
}

TEST_CASE("A PagedArray that has reserved room grows without allocating") {
    Array array;
    fill(array, page_size / 2);
    array.reserve_more(10 * page_size);
    const auto use_it = [&] {
        const AllocationsFailAfter none{0};
        fill(array, page_size / 2 + 10 * page_size);
    };
    REQUIRE_NOTHROW(use_it());
    REQUIRE(holds_its_indexes(array));
}

TEST_CASE("An element of a PagedArray as large as a cache line lies in just one") {
    struct Line {
        char bytes[64];
    };
    struct alignas(256) Strict {
        char bytes[256];
    };
    PagedArray<Line> lines;
    PagedArray<Strict> strict;
    bool aligned = true;
    for (int count = 0; count < 1000; ++count) {
        aligned = aligned && reinterpret_cast<std::uintptr_t>(&lines.emplace_back()) % 64 == 0;
        aligned = aligned && reinterpret_cast<std::uintptr_t>(&strict.emplace_back()) % 256 == 0;
    }
    REQUIRE(aligned);
}
