#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <new>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/heap.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using vigil::MinHeap;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

struct Entry {
    std::int64_t key;
    std::size_t id;

    bool operator<(const Entry& other) const { return key != other.key ? key < other.key : id < other.id; }
};

/// Keeps the index of each entry, by its id.
struct Tracker {
    std::vector<std::size_t>& places;
    void operator()(const Entry& entry, std::size_t index) const { places[entry.id] = index; }
};

/// A heap beside a sorted set that holds the same, and where each entry of the heap stands.
class CheckedHeap {
   public:
    [[nodiscard]] std::size_t size() const { return model_.size(); }
    [[nodiscard]] std::size_t random_index(Random& random) const { return random.below(size()); }

    void push(std::int64_t key) {
        const Entry entry{key, places_.size()};
        places_.push_back(nowhere);
        model_.insert(entry);
        heap_.push(entry, Tracker{places_});
    }
    void pop() {
        expect(!(heap_.top() < *model_.begin()) && !(*model_.begin() < heap_.top()), "the top is the least");
        forget(heap_.top());
        heap_.pop(Tracker{places_});
    }
    void remove(std::size_t index) {
        forget(heap_[index]);
        heap_.remove(index, Tracker{places_});
    }
    void replace(std::size_t index, std::int64_t key) {
        const Entry entry{key, heap_[index].id};
        forget(heap_[index]);
        model_.insert(entry);
        heap_.replace(index, entry, Tracker{places_});
    }
    void check() const {
        expect(heap_.check(), "no entry is less than its parent");
        expect(heap_.size() == model_.size() && heap_.empty() == model_.empty(), "the size");
        for (std::size_t index = 0; index < heap_.size(); ++index) {
            expect(places_[heap_[index].id] == index, "each entry is where it was said to be");
        }
        expect(heap_.empty() || heap_.top().key == model_.begin()->key, "the top is the least");
    }

   private:
    static constexpr std::size_t nowhere = ~std::size_t{0};

    static void expect(bool right, const char* claim) {
        if (!right) FAIL(claim);
    }
    void forget(const Entry& entry) {
        expect(model_.erase(entry) == 1, "each entry is there once");
        places_[entry.id] = nowhere;
    }

    MinHeap<Entry> heap_;
    std::multiset<Entry> model_;
    std::vector<std::size_t> places_;
};

void random_step(CheckedHeap& heap, Random& random, std::size_t around, std::uint64_t keys) {
    const auto key = static_cast<std::int64_t>(random.below(keys));
    if (heap.size() == 0 || random.below(2 * around) >= heap.size()) return heap.push(key);
    switch (random.below(3)) {
        case 0:
            return heap.pop();
        case 1:
            return heap.remove(heap.random_index(random));
        default:
            return heap.replace(heap.random_index(random), key);
    }
}

}  // namespace

TEST_CASE("MinHeap gives its entries in order, whatever is done to it in between") {
    Random random;
    CAPTURE(random.seed());
    for (const std::uint64_t keys : {3, 1000, 1'000'000'000}) {
        CheckedHeap heap;
        for (int step = 0; step < 20'000; ++step) {
            random_step(heap, random, 60, keys);
            heap.check();
        }
        while (heap.size() > 0) heap.pop();
        heap.check();
    }
}

TEST_CASE("MinHeap gives its entries in order when it spans many pages") {
    Random random;
    CAPTURE(random.seed());
    CheckedHeap heap;
    for (int step = 0; step < 200'000; ++step) {
        random_step(heap, random, step % 50'000 < 25'000 ? 6000 : 200, 10'000);
        if (step % 1000 == 0) heap.check();
    }
    heap.check();
    while (heap.size() > 0) heap.pop();
}

TEST_CASE("MinHeap can remove an entry from any index") {
    for (std::size_t size = 1; size <= 90; ++size) {
        for (std::size_t index = 0; index < size; ++index) {
            CheckedHeap heap;
            for (std::size_t count = 0; count < size; ++count) heap.push(static_cast<std::int64_t>(count * 37 % size));
            heap.remove(index);
            heap.check();
        }
    }
}

TEST_CASE("MinHeap orders equal keys by what else their < compares") {
    MinHeap<Entry> heap;
    for (std::size_t count = 0; count < 1000; ++count) heap.push({7, count * 389 % 1000});
    bool in_order = true;
    for (std::size_t id = 0; id < 1000; ++id) {
        in_order = in_order && heap.top().id == id;
        heap.pop();
    }
    REQUIRE(in_order);
    REQUIRE(heap.empty());
}

TEST_CASE("MinHeap can push a copy of one of its own entries") {
    MinHeap<std::uint64_t> heap;
    for (std::uint64_t key = 10'000; key > 0; --key) heap.push(key);
    for (int count = 0; count < 10'000; ++count) heap.push(heap.top());
    REQUIRE(heap.check());
    for (int count = 0; count < 10'001; ++count) {
        if (heap.top() != 1) FAIL("a copy was wrong");
        heap.pop();
    }
    REQUIRE(heap.top() == 2);
}

TEST_CASE("An empty MinHeap has no entries, cleared or moved from too") {
    MinHeap<std::uint64_t> heap;
    REQUIRE(heap.empty());
    REQUIRE(heap.size() == 0);
    REQUIRE(heap.bytes() == 0);
    for (std::uint64_t key = 0; key < 5000; ++key) heap.push(key);
    auto moved = std::move(heap);
    REQUIRE(heap.empty());
    REQUIRE(moved.size() == 5000);
    moved.clear();
    REQUIRE(moved.empty());
    for (auto* again : {&heap, &moved}) {
        again->push(2);
        again->push(1);
        REQUIRE(again->top() == 1);
        REQUIRE(again->size() == 2);
    }
}

TEST_CASE("MinHeap is as it was when memory runs out") {
    MinHeap<std::uint64_t> heap;
    std::size_t failures = 0;
    const auto pushes = [&](std::uint64_t key, std::size_t allowed) {
        try {
            const AllocationsFailAfter limited{allowed};
            heap.push(key);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    for (std::uint64_t key = 20'000; key > 0; --key) {
        const auto size = heap.size();
        for (std::size_t allowed = 0; !pushes(key, allowed); ++allowed, ++failures) {
            if (heap.size() != size || !heap.check()) FAIL("changed at " << size);
        }
    }
    REQUIRE(failures >= 10);
    for (std::uint64_t key = 1; key <= 20'000; ++key, heap.pop()) {
        if (heap.top() != key) FAIL("lost " << key);
    }
    REQUIRE(heap.empty());
}

TEST_CASE("MinHeap that has reserved room can be pushed to without allocating") {
    MinHeap<std::uint64_t> heap;
    heap.reserve_more(10'000);
    const auto use_it = [&] {
        const AllocationsFailAfter none{0};
        for (std::uint64_t key = 0; key < 10'000; ++key) heap.push(key);
    };
    REQUIRE_NOTHROW(use_it());
    REQUIRE(heap.size() == 10'000);
}
