#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <deque>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/slot_lists.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using vigil::SlotLists;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Number = SlotLists::Number;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// Lists beside plain ones of the same; no number is added twice. One walk at a time.
class CheckedLists {
   public:
    explicit CheckedLists(std::size_t count) : heads_(count), model_(count) {}

    [[nodiscard]] std::size_t count() const { return heads_.size(); }
    [[nodiscard]] std::size_t size(std::size_t list) const { return model_[list].size(); }
    [[nodiscard]] bool walking() const { return walk_.has_value(); }

    /// False if memory ran out.
    bool add(std::size_t list, std::size_t allowed_allocations = unlimited) {
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            lists.add(heads_[list], next_);
        } catch (const std::bad_alloc&) {
            return false;
        }
        model_[list].push_back(next_++);
        return true;
    }

    void take(std::size_t list) {
        if (heads_[list].empty()) return;
        const SlotLists::Chunk first = lists.first_of(heads_[list]);
        auto& model = model_[list];
        expect(first.count > 0 && first.count <= model.size(), "the first chunk is not empty");
        expect(std::equal(first.begin(), first.end(), model.begin()), "it has the first numbers");
        if (const auto* coming = lists.coming_after(lists.first_of(heads_[list]))) {
            expect(coming->count > 0 && first.count + coming->count <= model.size(), "nor is the next");
            expect(std::equal(coming->begin(), coming->end(), model.begin() + first.count), "it has those after them");
        } else {
            expect(first.count == model.size(), "there is a next chunk if there are more numbers");
        }
        if (walk_ && walk_->is_in(heads_[list])) walk_.reset();
        lists.take(heads_[list]);
        model.erase(model.begin(), model.begin() + first.count);
    }

    void begin_walk(std::size_t list) {
        walk_.emplace(heads_[list]);
        for (std::size_t other = 0; other < count(); ++other) {
            expect(walk_->is_in(heads_[other]) == (other == list), "a walk is in one list");
        }
        walked_ = list;
        to_see_ = {model_[list].begin(), model_[list].end()};
        seen_.clear();
    }
    /// Drops every number that `unwanted` chooses. False at the end.
    template <class Unwanted>
    bool walk_on(Unwanted&& unwanted) {
        std::size_t dropped = 0, chosen = 0, looked_at = 0;
        const bool more = lists.filter_next(*walk_, dropped, [&](Number number) {
            ++looked_at;
            expect(seen_.insert(number).second, "a walk sees nothing twice");
            to_see_.erase(number);
            if (!unwanted(number)) return true;
            ++chosen;
            expect(std::erase(model_[walked_], number) == 1, "it sees only what is in its list");
            return false;
        });
        expect(dropped == chosen, "what is dropped is counted");
        expect(looked_at <= SlotLists::chunk_size, "a step looks at a chunk");
        expect(more == (looked_at > 0), "a walk says when it is at its end");
        if (!more) {
            expect(to_see_.empty(), "a walk leaves out nothing that was there when it began");
            walk_.reset();
        }
        return more;
    }

    void compare(std::size_t list) const {
        expect(heads_[list].empty() == model_[list].empty(), "a list knows whether it is empty");
        auto expected = model_[list].begin();
        lists.each(heads_[list], [&](Number number) {
            expect(expected != model_[list].end() && number == *expected++, "a list keeps its order");
        });
        expect(expected == model_[list].end(), "a list loses nothing");
    }
    void compare_all() const {
        std::size_t chunks = 0;
        for (std::size_t list = 0; list < count(); ++list) {
            compare(list);
            expect(lists.check(heads_[list], chunks), "check()");
        }
        expect(lists.check_count(chunks), "check_count()");
    }

    SlotLists lists;

   private:
    std::vector<SlotLists::List> heads_;
    std::vector<std::deque<Number>> model_;
    Number next_ = 0;

    std::optional<SlotLists::Walk> walk_;
    std::size_t walked_ = 0;
    std::set<Number> to_see_, seen_;
};

void random_step(CheckedLists& checked, Random& random, std::size_t around) {
    const std::size_t list = random.below(checked.count());
    if (random.below(2 * around) >= checked.size(list)) {
        checked.add(list);
    } else if (random.one_in(4)) {
        checked.take(list);
    } else if (!checked.walking()) {
        checked.begin_walk(list);
    } else {
        const auto one_in = 1 + random.below(4);
        checked.walk_on([&](Number) { return random.one_in(one_in); });
    }
    checked.compare(list);
}

}  // namespace

TEST_CASE("SlotLists keep their order and lose nothing, whatever is taken and filtered") {
    Random random;
    CAPTURE(random.seed());
    for (const std::size_t count : {1, 2, 10, 300}) {
        for (const std::size_t around : {3, 14, 100}) {
            CAPTURE(count, around);
            CheckedLists checked(count);
            for (int step = 0; step < 20'000; ++step) {
                random_step(checked, random, around);
                if (step % 200 == 0) checked.compare_all();
            }
            checked.compare_all();
        }
    }
}

TEST_CASE("A walk through a SlotList is not disturbed by what is added meanwhile") {
    for (const std::size_t before : {0, 1, 13, 14, 15, 28, 100}) {
        for (const std::size_t added : {1, 14, 20}) {
            for (const unsigned keep : {1U, 2U, 14U, 1000U}) {
                CAPTURE(before, added, keep);
                CheckedLists checked(2);
                for (std::size_t number = 0; number < before; ++number) checked.add(0);
                checked.begin_walk(0);
                for (std::size_t step = 0; step < 20 && checked.walking(); ++step) {
                    checked.walk_on([&](Number number) { return number % keep != 0; });
                    for (std::size_t number = 0; number < added; ++number) checked.add(0);
                    checked.compare_all();
                }
            }
        }
    }
}

TEST_CASE("SlotLists use the memory again of what was taken or filtered") {
    CheckedLists checked(50);
    std::size_t bytes = 0;
    for (int round = 0; round < 20; ++round) {
        for (std::size_t list = 0; list < checked.count(); ++list) {
            for (int number = 0; number < 1000; ++number) checked.add(list);
        }
        if (round == 0) bytes = checked.lists.bytes();
        REQUIRE(checked.lists.bytes() == bytes);
        for (std::size_t list = 0; list < checked.count(); ++list) {
            if (list % 2 == 0) {
                while (checked.size(list) > 0) checked.take(list);
            } else {
                checked.begin_walk(list);
                while (checked.walk_on([](Number) { return true; })) {
                }
            }
        }
        checked.compare_all();
    }
}

TEST_CASE("A number in a SlotList costs little more than four bytes") {
    CheckedLists checked(1);
    for (int number = 0; number < 100'000; ++number) checked.add(0);
    REQUIRE(checked.lists.bytes() < 100'000 * 5);
}

TEST_CASE("SlotLists are as they were when memory runs out in add") {
    Random random;
    CAPTURE(random.seed());
    CheckedLists checked(100);
    std::size_t failures = 0;
    for (int count = 0; count < 20'000; ++count) {
        const std::size_t list = random.below(checked.count());
        for (std::size_t allowed = 0; !checked.add(list, allowed); ++allowed, ++failures) checked.compare_all();
    }
    REQUIRE(failures >= 5);
    checked.compare_all();
}

TEST_CASE("SlotLists need no memory for as many numbers as were reserved, each in a list of its own") {
    for (const std::size_t count : {1, 255, 256, 257, 2000}) {
        CAPTURE(count);
        CheckedLists checked(count + 1);
        checked.add(count);
        checked.lists.reserve_more(count);
        for (std::size_t list = 0; list < count; ++list) REQUIRE(checked.add(list, 0));
        checked.compare_all();
    }
}

TEST_CASE("SlotLists that are moved take all lists along") {
    CheckedLists checked(10);
    for (int number = 0; number < 1000; ++number) checked.add(static_cast<std::size_t>(number) % 10);
    for (int count = 0; count < 5; ++count) checked.take(3);
    SlotLists moved(std::move(checked.lists));
    SlotLists assigned;
    assigned = std::move(moved);
    checked.lists = std::move(assigned);
    checked.compare_all();
    for (int number = 0; number < 1000; ++number) checked.add(static_cast<std::size_t>(number) % 7);
    checked.compare_all();
}

TEST_CASE("The check of SlotLists sees a chunk that is in no list, and one that is in two") {
    SlotLists lists;
    SlotLists::List one, other;
    for (Number number = 0; number < 30; ++number) lists.add(number < 20 ? one : other, number);
    std::size_t chunks = 0;
    REQUIRE(lists.check(one, chunks));
    REQUIRE(chunks == 2);
    REQUIRE_FALSE(lists.check_count(chunks));
    REQUIRE(lists.check(other, chunks));
    REQUIRE(lists.check_count(chunks));
    REQUIRE_FALSE(lists.check(other, chunks));
}
