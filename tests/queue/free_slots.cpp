#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <map>
#include <vector>
#include <vigil/queue/free_slots.hpp>

#include "random.hpp"

using vigil::FreeSlots;
using vigil::testing::Random;

namespace {

using Slot = FreeSlots::Slot;

/// Free slots beside a plain stack of the same.
class CheckedSlots {
   public:
    [[nodiscard]] std::size_t size() const { return stack_.size(); }

    void push(Slot slot) {
        free_.push(slot, links_[slot]);
        stack_.push_back(slot);
        compare();
    }

    Slot pop() {
        const auto [slot, coming] = free_.pop([&](Slot popped) { return links_.at(popped); });
        if (slot != stack_.back()) FAIL("the slot that came last goes first");
        stack_.pop_back();
        const Slot known = stack_.size() < 8 ? FreeSlots::none : stack_[stack_.size() - 8];
        if (coming != known) FAIL("what comes next but seven is known");
        links_.erase(slot);
        compare();
        return slot;
    }

    /// Whether check() is content if only `is_free` is free.
    template <class IsFree>
    [[nodiscard]] bool check(IsFree&& is_free) const {
        return free_.check([&](Slot slot) { return links_.at(slot); }, is_free);
    }
    [[nodiscard]] bool check() const {
        std::vector<Slot> seen;
        const bool content = check([&](Slot slot) {
            seen.push_back(slot);
            return true;
        });
        return content && seen.size() == stack_.size() && std::is_permutation(seen.begin(), seen.end(), stack_.begin());
    }
    void relink(Slot slot, Slot to) { links_.at(slot) = to; }

   private:
    void compare() const {
        if (free_.size() != stack_.size() || free_.empty() != stack_.empty()) FAIL("the size");
    }

    FreeSlots free_;
    std::map<Slot, Slot> links_;
    std::vector<Slot> stack_;
};

}  // namespace

TEST_CASE("FreeSlots is empty at first") {
    const CheckedSlots slots;
    REQUIRE(FreeSlots().empty());
    REQUIRE(FreeSlots().size() == 0);
    REQUIRE(slots.check());
}

TEST_CASE("FreeSlots gives each slot once, the last one first, and knows what comes next but seven") {
    Random random;
    CAPTURE(random.seed());
    for (const std::size_t around : {3, 8, 20, 300}) {
        CAPTURE(around);
        CheckedSlots slots;
        std::vector<Slot> used;
        for (Slot slot = 0; slot < 2 * around; ++slot) used.push_back(slot);
        for (int step = 0; step < 20'000; ++step) {
            if (!used.empty() && random.below(2 * around) >= slots.size()) {
                std::swap(used[random.below(used.size())], used.back());
                slots.push(used.back());
                used.pop_back();
            } else {
                used.push_back(slots.pop());
            }
            if (step % 100 == 0) REQUIRE(slots.check());
        }
        while (slots.size() > 0) slots.pop();
        REQUIRE(slots.check());
    }
}

TEST_CASE("FreeSlots takes any slot number but the one that means none") {
    CheckedSlots slots;
    for (const Slot slot : {Slot{0}, FreeSlots::none - 1}) slots.push(slot);
    REQUIRE(slots.pop() == FreeSlots::none - 1);
    REQUIRE(slots.pop() == 0);
}

TEST_CASE("FreeSlots notices in check() a slot that is not free, a chain that ends early and one that goes on") {
    CheckedSlots slots;
    for (Slot slot = 0; slot < 21; ++slot) slots.push(slot);
    for (Slot used = 0; used < 21; ++used) {
        REQUIRE_FALSE(slots.check([&](Slot slot) { return slot != used; }));
    }
    slots.relink(20, FreeSlots::none);
    REQUIRE_FALSE(slots.check());
    slots.relink(20, 12);
    REQUIRE(slots.check());
    slots.relink(0, 8);
    REQUIRE_FALSE(slots.check());
}
