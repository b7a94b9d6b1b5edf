#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/sorted_runs.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using vigil::SortedRuns;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
std::size_t comparisons = 0;

struct Entry {
    std::uint64_t key;
    std::uint64_t sequence;
    std::uint32_t number;

    bool operator<(const Entry& other) const noexcept {
        ++comparisons;
        return key != other.key ? key < other.key : sequence < other.sequence;
    }
};
constexpr std::size_t page_size = SortedRuns<Entry>::page_size;

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// Runs beside a sorted set of what they show, and a list of what they do not yet.
class CheckedRuns {
   public:
    using Known = std::pair<std::uint64_t, std::uint64_t>;  // key and sequence

    [[nodiscard]] std::size_t size() const { return shown_.size() + gathered_.size(); }
    [[nodiscard]] std::size_t shown() const { return shown_.size(); }

    void gather(std::uint64_t key, std::size_t allowed_allocations = unlimited) {
        {
            const AllocationsFailAfter limited{allowed_allocations};
            runs.gather(entry_of(key));
        }
        if (runs.size_of_open_run() == 1) show_gathered();  // a run lies in one page
        const Known gathered{key, next_sequence_++};
        least_ = gathered_.empty() ? gathered : std::min(least_, gathered);
        gathered_.push_back(gathered);
        compare();
    }
    void close(std::size_t allowed_allocations = unlimited) {
        {
            const AllocationsFailAfter limited{allowed_allocations};
            runs.close();
        }
        show_gathered();
        compare();
    }
    void push(std::uint64_t key, std::size_t allowed_allocations = unlimited) {
        {
            const AllocationsFailAfter limited{allowed_allocations};
            runs.push(entry_of(key));
        }
        shown_.insert({key, next_sequence_++});
        compare();
    }
    void pop() {
        runs.pop();
        shown_.erase(shown_.begin());
        compare();
    }
    void drain() {
        while (shown() > 0) pop();
    }

    /// Drops some of what `wanted(key)` does not choose. Does nothing if memory runs out.
    template <class Wanted>
    void sweep(Wanted&& wanted, std::size_t allowed_allocations = unlimited) {
        std::size_t looked_at = 0;
        dropped_.reserve(2 * page_size);
        {
            const AllocationsFailAfter limited{allowed_allocations};
            runs.sweep([&](const Entry& entry) {
                ++looked_at;
                if (!wanted(entry.key)) dropped_.push_back({entry.key, entry.sequence});
                return wanted(entry.key);
            });
        }
        expect(looked_at < 2 * page_size, "a sweep is short");
        if (looked_at > 0 || size() == 0) show_gathered();
        for (const Known& known : dropped_) expect(shown_.erase(known) == 1, "a sweep looks at what is there, once");
        dropped_.clear();
        compare();
    }
    /// In rounds, until nothing else is left.
    template <class Wanted>
    void sweep_all(Wanted&& wanted) {
        for (std::size_t steps = 0; std::any_of(shown_.begin(), shown_.end(), unwanted(wanted)); ++steps) {
            expect(steps < 10'000, "sweeps come to an end");
            sweep(wanted);
        }
    }

    template <class Wanted>
    void compare_least(Wanted&& wanted) const {
        const Known* expected = nullptr;
        for (const Known& known : shown_) {
            if (!wanted(known.first)) continue;
            expected = &known;
            break;
        }
        for (const Known& known : gathered_) {
            if (wanted(known.first) && (expected == nullptr || known < *expected)) expected = &known;
        }
        const Entry* least = runs.least([&](const Entry& entry) { return wanted(entry.key); });
        expect((least == nullptr) == (expected == nullptr), "the least wanted one is found, if there is one");
        expect(least == nullptr || Known{least->key, least->sequence} == *expected, "and it is the least");
    }

    /// Everything, whether it is shown or not.
    void compare_all() const {
        std::set<Known> all = shown_;
        all.insert(gathered_.begin(), gathered_.end());
        runs.each([&](const Entry& entry) {
            expect(all.erase({entry.key, entry.sequence}) == 1, "each() gives what is there, once");
        });
        expect(all.empty(), "each() leaves nothing out");
        expect(runs.check(), "check()");
        compare_least([](std::uint64_t) { return true; });
    }

    SortedRuns<Entry> runs;

   private:
    template <class Wanted>
    static auto unwanted(Wanted& wanted) {
        return [&wanted](const Known& known) { return !wanted(known.first); };
    }
    [[nodiscard]] Entry entry_of(std::uint64_t key) const {
        return {key, next_sequence_, static_cast<std::uint32_t>(next_sequence_ * 7)};
    }
    void show_gathered() {
        shown_.insert(gathered_.begin(), gathered_.end());
        gathered_.clear();
    }
    void compare() const {
        expect(runs.size() == size(), "size() counts all");
        expect(runs.empty() == shown_.empty(), "it is empty if nothing is shown");
        const Entry* least = runs.least_of_open_run();
        expect((least == nullptr) == gathered_.empty(), "what is not shown yet is known");
        expect(least == nullptr || Known{least->key, least->sequence} == least_, "and the least of it");
        if (shown_.empty()) return;
        const Entry& top = runs.top();
        expect(Known{top.key, top.sequence} == *shown_.begin(), "the least is on top");
        expect(top.number == static_cast<std::uint32_t>(top.sequence * 7), "an entry is as it was given");
    }

    std::set<Known> shown_;
    std::vector<Known> gathered_;
    Known least_;  // of those
    std::vector<Known> dropped_;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace

TEST_CASE("SortedRuns give in order what was gathered in any order, over any number of pages") {
    Random random;
    CAPTURE(random.seed());
    const std::pair<const char*, std::function<std::uint64_t(std::uint64_t)>> orders[] = {
        {"ascending", [](std::uint64_t index) { return index; }},
        {"descending", [](std::uint64_t index) { return 1'000'000 - index; }},
        {"equal", [](std::uint64_t) { return 7; }},
        {"all but one ascending", [](std::uint64_t index) { return index == page_size + 3 ? 0 : 1 + index; }},
        {"random", [&](std::uint64_t) { return random.below(1000); }},
    };
    for (const auto& [name, key] : orders) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2}, page_size - 1, page_size,
                                        page_size + 1, 2 * page_size, 2 * page_size + 1, 10 * page_size + 17}) {
            CAPTURE(name, count);
            CheckedRuns checked;
            for (std::size_t index = 0; index < count; ++index) checked.gather(key(index));
            checked.compare_all();
            checked.close();
            REQUIRE(checked.size() == count);
            checked.compare_all();
            checked.drain();
            REQUIRE(checked.runs.empty());
            checked.compare_all();
        }
    }
}

TEST_CASE("SortedRuns give all in order, whatever is pushed and popped between gathers") {
    Random random;
    CAPTURE(random.seed());
    for (const std::size_t around : {10, 1000, 5000}) {
        CAPTURE(around);
        CheckedRuns checked;
        for (int step = 0; step < 20'000; ++step) {
            const std::uint64_t key = random.below(1 + random.below(1'000'000));
            if (random.one_in(20)) {
                checked.close();
            } else if (random.one_in(500)) {
                const auto part = 1 + random.below(3);
                const auto wanted = [&](std::uint64_t key) { return key % part == 0; };
                checked.compare_least(wanted);
                if (random.one_in(2)) {
                    checked.sweep(wanted);
                } else {
                    checked.close();
                    checked.sweep_all(wanted);
                }
            } else if (random.below(2 * around) < checked.shown()) {
                for (auto count = random.below(50); count > 0 && checked.shown() > 0; --count) checked.pop();
            } else if (random.one_in(3)) {
                checked.push(key);
            } else {
                const std::size_t most = random.one_in(20) ? 2 * page_size : 15;
                for (auto count = random.below(most); count > 0; --count) checked.gather(key + random.below(100));
            }
            if (step % 500 == 0) checked.compare_all();
        }
        checked.close();
        checked.drain();
        checked.compare_all();
    }
}

TEST_CASE("SortedRuns show what is pushed at once, and what is gathered only after close") {
    CheckedRuns checked;
    checked.gather(1);
    REQUIRE(checked.runs.empty());
    checked.push(5);
    REQUIRE(checked.runs.top().key == 5);
    checked.gather(2);
    REQUIRE(checked.runs.size() == 3);
    checked.pop();
    REQUIRE(checked.runs.empty());
    checked.compare_all();
    checked.close();
    REQUIRE(checked.runs.size() == 2);
    REQUIRE(checked.runs.top().key == 1);
    checked.close();
    REQUIRE(checked.runs.size() == 2);
    checked.drain();
}

TEST_CASE("SortedRuns compare each entry once while they come in order") {
    SortedRuns<Entry> runs;
    constexpr std::size_t count = 3 * page_size;
    comparisons = 0;
    for (std::uint64_t index = 0; index < count; ++index) runs.gather({index / 3, index, 0});
    runs.close();
    REQUIRE(comparisons < count + 10);
    // And again after a run that was not in order.
    runs.gather({1, 0, 0});
    runs.gather({0, 0, 0});
    runs.close();
    comparisons = 0;
    for (std::uint64_t index = 0; index < 100; ++index) runs.gather({index, index, 0});
    runs.close();
    REQUIRE(comparisons < 100 + 10);
}

TEST_CASE("SortedRuns keep no memory to speak of when everything has been popped") {
    CheckedRuns checked;
    for (int round = 0; round < 20; ++round) {
        for (std::uint64_t key = 0; key < 5 * page_size; ++key) checked.gather(key * 389 % 1000);
        checked.close();
        for (std::uint64_t key = 0; key < 5 * page_size; ++key) checked.push(key * 389 % 1000);
        REQUIRE(checked.runs.bytes() > 150'000);
        checked.drain();
        REQUIRE(checked.runs.bytes() < 50'000);
    }
}

TEST_CASE("SortedRuns need no memory for as many as were reserved, gathered or pushed, and to close") {
    Random random;
    CAPTURE(random.seed());
    CheckedRuns checked;
    for (int round = 0; round < 300; ++round) {
        const std::size_t count = random.one_in(3) ? 1 + random.below(3 * page_size) : 1 + random.below(20);
        checked.runs.reserve_more(count);
        const bool pushes = random.one_in(2);
        for (std::size_t index = 0; index < count; ++index) {
            if (pushes && random.one_in(2)) {
                checked.push(random.below(1000), 0);
            } else {
                checked.gather(random.below(1000), 0);
            }
        }
        if (random.one_in(2)) checked.close(0);
        if (random.one_in(10)) checked.drain();
    }
    checked.compare_all();
}

TEST_CASE("SortedRuns reserve for the close of a run that fills its page, and for that of the next") {
    for (std::uint64_t pushed = 0; pushed < 300; ++pushed) {
        CheckedRuns checked;
        for (std::uint64_t key = 0; key < pushed; ++key) checked.push(key);
        for (std::uint64_t key = 0; key < page_size; ++key) checked.gather(key);
        checked.runs.reserve_more(1);
        checked.gather(7, 0);
        checked.close(0);
    }
}

TEST_CASE("SortedRuns drop what is not wanted a page at a time, and nothing when memory runs out in that") {
    CheckedRuns checked;
    for (std::uint64_t key = 0; key < 5 * page_size; ++key) checked.gather(key * 389 % 1000);
    for (std::uint64_t key = 0; key < 1000; ++key) checked.push(key * 389 % 1000);
    const auto even = [](std::uint64_t key) { return key % 2 == 0; };
    const std::size_t before = checked.size();
    checked.sweep(even, 0);
    REQUIRE(checked.size() == before);
    checked.compare_all();
    checked.close();
    checked.sweep_all(even);
    checked.compare_all();
    REQUIRE(checked.size() == before / 2);
    checked.gather(7);
    checked.close();
    checked.sweep_all([](std::uint64_t key) { return key < 10; });
    REQUIRE(checked.size() < 100);
    checked.compare_all();
    checked.sweep_all([](std::uint64_t) { return false; });
    REQUIRE(checked.runs.empty());
    REQUIRE(checked.runs.bytes() < 50'000);
    checked.gather(3);
    checked.close();
    checked.drain();
    checked.compare_all();
}

TEST_CASE("SortedRuns use pages again while some entries stay for long") {
    Random random;
    CAPTURE(random.seed());
    CheckedRuns checked;
    checked.push(0);  // never popped
    std::uint64_t key = 1;
    for (int round = 0; round < 200; ++round) {
        for (std::size_t count = 0; count < 2 * page_size; ++count) checked.gather(key += random.below(3));
        checked.close();
        checked.sweep_all([&](std::uint64_t wanted) { return wanted == 0 || wanted > key - 10; });
        REQUIRE(checked.runs.bytes() < 250'000);
    }
    checked.compare_all();
}

TEST_CASE("SortedRuns that are moved take everything along and leave empty ones that can be used") {
    CheckedRuns checked;
    for (std::uint64_t key = 0; key < 3 * page_size + 7; ++key) checked.gather(key * 389 % 1000);
    SortedRuns<Entry> moved(std::move(checked.runs));
    REQUIRE(checked.runs.size() == 0);
    REQUIRE(checked.runs.check());
    checked.runs.push({1, 1, 1});
    checked.runs.gather({0, 0, 0});
    checked.runs.close();
    REQUIRE(checked.runs.top().key == 0);
    REQUIRE(checked.runs.check());
    checked.runs = std::move(moved);
    checked.compare_all();
}
