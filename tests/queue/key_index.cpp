#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>
#include <vigil/queue/key_index.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using vigil::KeyIndex;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Slot = KeyIndex::Slot;
using Hash = KeyIndex::Hash;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// An index beside two maps that hold the same.
class CheckedIndex {
   public:
    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] std::size_t count(Hash hash) const { return by_hash_.count(hash); }
    [[nodiscard]] bool has(Slot slot) const { return known_.contains(slot); }
    [[nodiscard]] Hash hash_of(Slot slot) const { return known_.at(slot).hash; }
    [[nodiscard]] Slot random_live(Random& random) const { return live_[random.below(live_.size())]; }
    /// One that is not live: small, large, or any.
    [[nodiscard]] Slot random_new(Random& random) const {
        const std::uint64_t ends[] = {2 * size() + 8, KeyIndex::no_slot};
        Slot slot = 0;
        do {
            slot = static_cast<Slot>(random.below(ends[random.below(std::size(ends))]));
            if (random.one_in(2)) slot = KeyIndex::no_slot - 1 - slot;
        } while (has(slot));
        return slot;
    }

    /// False if memory ran out.
    bool insert(Hash hash, Slot slot, std::size_t allowed_allocations = unlimited) {
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            index.insert(hash, slot);
        } catch (const std::bad_alloc&) {
            return false;
        }
        remember(hash, slot);
        return true;
    }
    void erase(Slot slot) {
        index.erase(hash_of(slot), slot);
        forget(slot);
    }
    void replace(Slot old_slot, Slot new_slot) {
        const Hash hash = hash_of(old_slot);
        index.replace(hash, old_slot, new_slot);
        forget(old_slot);
        remember(hash, new_slot);
    }

    void find(Slot slot) const {
        const Slot found = index.find(hash_of(slot), [&](Slot candidate) { return candidate == slot; });
        expect(found == slot, "what was inserted is found");
    }
    /// All that have that hash are offered, once, and nothing else.
    void find_all(Hash hash) const {
        std::size_t offered = 0;
        const Slot found = index.find(hash, [&](Slot candidate) {
            expect(has(candidate) && hash_of(candidate) == hash, "only slots with that hash are offered");
            ++offered;
            return false;
        });
        expect(found == KeyIndex::no_slot, "what is not equal is not found");
        expect(offered == count(hash), "each slot with that hash is offered once");
        const Slot guess = index.guess(index.probe(hash));
        expect((guess == KeyIndex::no_slot) == (offered == 0), "there is a guess if there is such a hash");
        expect(offered == 0 || hash_of(guess) == hash, "the guess has that hash");
        index.prefetch(hash);
    }

    void check() const {
        expect(index.size() == size(), "the size");
        expect(index.check([&](Slot slot) { return has(slot) ? hash_of(slot) : ~Hash{0}; }), "check()");
    }
    void check_all() const {
        check();
        for (const Slot slot : live_) find(slot);
    }

    KeyIndex index;

   private:
    struct Known {
        Hash hash;
        std::size_t place;  // in live_
    };

    void remember(Hash hash, Slot slot) {
        known_[slot] = {hash, live_.size()};
        live_.push_back(slot);
        by_hash_.emplace(hash, slot);
    }
    void forget(Slot slot) {
        const auto [hash, place] = known_.at(slot);
        live_[place] = live_.back();
        known_.at(live_.back()).place = place;
        live_.pop_back();
        known_.erase(slot);
        const auto [begin, end] = by_hash_.equal_range(hash);
        by_hash_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == slot; }));
    }

    std::unordered_map<Slot, Known> known_;
    std::unordered_multimap<Hash, Slot> by_hash_;
    std::vector<Slot> live_;
};

Hash any_hash(Random& random) { return static_cast<Hash>(random.below(std::uint64_t{1} << 32)); }

/// Hashes of one kind, and the number of slots up to which they fit.
struct Kind {
    const char* name;
    Hash (*hash)(Random& random);
    std::size_t most;
};

constexpr std::size_t most_of_one_hash = 400;
constexpr Kind kinds[] = {
    {"random", any_hash, 20'000},
    {"one home", [](Random& random) { return any_hash(random) << 9 | 77; }, 5000},
    {"homes at the end, so that they go round", [](Random& random) { return any_hash(random) | 0x1fc; }, 5000},
    {"the upper third equal", [](Random& random) { return 0xabc0'0000 | static_cast<Hash>(random.below(1 << 22)); },
     2000},
    {"lower segments only", [](Random& random) { return any_hash(random) >> 10; }, 5000},
    {"one hash", [](Random&) { return Hash{0xffff'ffff}; }, most_of_one_hash},
    {"few hashes, far apart", [](Random& random) { return static_cast<Hash>(random.below(40)) * 0x0666'6666; },
     40 * 100},
    {"few hashes, side by side", [](Random& random) { return static_cast<Hash>(random.below(40)); }, most_of_one_hash},
};

void random_step(CheckedIndex& checked, Random& random, const Kind& kind) {
    const bool full = checked.size() >= kind.most;
    if (checked.size() == 0 || (!full && random.below(kind.most) >= checked.size())) {
        checked.insert(kind.hash(random), checked.random_new(random));
        return;
    }
    switch (random.below(5)) {
        case 0:
            return checked.find(checked.random_live(random));
        case 1:
            return checked.find_all(kind.hash(random));
        case 2:
            return checked.replace(checked.random_live(random), checked.random_new(random));
        default:
            return checked.erase(checked.random_live(random));
    }
}

}  // namespace

TEST_CASE("KeyIndex finds exactly what was inserted, whatever the hashes have in common") {
    Random random;
    CAPTURE(random.seed());
    for (const Kind& kind : kinds) {
        CAPTURE(kind.name);
        CheckedIndex checked;
        for (int step = 0; step < 150'000; ++step) {
            random_step(checked, random, kind);
            if (step % 1500 == 0) checked.check();
        }
        checked.check_all();
        while (checked.size() > 0) checked.erase(checked.random_live(random));
        checked.check();
        checked.find_all(kind.hash(random));
    }
}

TEST_CASE("KeyIndex grows to hundreds of thousands and shrinks to nothing, several times") {
    Random random;
    CAPTURE(random.seed());
    CheckedIndex checked;
    for (const std::size_t target : {200'000, 1000, 250'000, 0, 500, 0}) {
        for (std::size_t step = 0; checked.size() != target; ++step) {
            if (checked.size() < target) {
                checked.insert(any_hash(random), checked.random_new(random));
            } else {
                checked.erase(checked.random_live(random));
            }
            if (step % 20'000 == 0) checked.check();
        }
        checked.check_all();
    }
}

TEST_CASE("An empty KeyIndex finds nothing and holds no memory") {
    const KeyIndex index;
    REQUIRE(index.size() == 0);
    REQUIRE(index.bytes() == 0);
    REQUIRE(index.find(7, [](Slot) { return true; }) == KeyIndex::no_slot);
    REQUIRE(index.guess(index.probe(7)) == KeyIndex::no_slot);
    index.prefetch(7);
    REQUIRE(index.check([](Slot) { return Hash{0}; }));
}

TEST_CASE("KeyIndex keeps slots with one hash apart") {
    CheckedIndex checked;
    for (Slot slot = 0; slot < most_of_one_hash; ++slot) checked.insert(42, slot);
    checked.check_all();
    for (Slot slot = 0; slot < most_of_one_hash; slot += 2) checked.erase(slot);
    checked.find_all(42);
    checked.check_all();
}

TEST_CASE("KeyIndex memory follows the number of its slots") {
    CheckedIndex checked;
    Random random;
    CAPTURE(random.seed());
    for (Slot slot = 0; slot < 100'000; ++slot) checked.insert(any_hash(random), slot);
    REQUIRE(checked.index.bytes() > 100'000 * 8);
    REQUIRE(checked.index.bytes() < 100'000 * 20);
}

TEST_CASE("A KeyIndex that is moved takes everything along and leaves an empty one that can be used") {
    Random random;
    CAPTURE(random.seed());
    CheckedIndex checked;
    for (int round = 0; round < 20; ++round) {
        for (int step = 0; step < 2000; ++step) random_step(checked, random, kinds[0]);
        KeyIndex moved(std::move(checked.index));
        REQUIRE(moved.size() == checked.size());
        REQUIRE(moved.check([&](Slot slot) { return checked.hash_of(slot); }));
        REQUIRE(checked.index.size() == 0);
        REQUIRE(checked.index.guess(checked.index.probe(checked.hash_of(checked.random_live(random)))) ==
                KeyIndex::no_slot);
        REQUIRE(checked.index.check([](Slot) { return Hash{0}; }));
        checked.index.insert(7, 7);
        REQUIRE(checked.index.guess(checked.index.probe(7)) == 7);
        checked.index = std::move(moved);
        checked.check_all();
    }
}

TEST_CASE("KeyIndex is as it was when memory runs out") {
    Random random;
    CAPTURE(random.seed());
    for (const Kind& kind : {kinds[0], kinds[1], kinds[3]}) {
        CAPTURE(kind.name);
        CheckedIndex checked;
        std::size_t failures = 0;
        for (std::size_t count = 0; count < std::min(kind.most, std::size_t{10'000}); ++count) {
            const Hash hash = kind.hash(random);
            const Slot slot = checked.random_new(random);
            for (std::size_t allowed = 0; !checked.insert(hash, slot, allowed); ++allowed, ++failures) {
                checked.find_all(hash);
                checked.check_all();
            }
        }
        REQUIRE(failures >= 10);
        checked.check_all();
    }
}

TEST_CASE("More keys with one hash, or one upper part of it, than a segment holds are a length_error") {
    Random random;
    CAPTURE(random.seed());
    const bool one_hash = GENERATE(true, false);
    CAPTURE(one_hash);
    const Hash upper = any_hash(random) & ~Hash{63};
    const auto next_hash = [&] { return upper | (one_hash ? 7 : static_cast<Hash>(random.below(64))); };
    CheckedIndex checked;
    for (Slot slot = 1000; slot < 3000; ++slot) checked.insert(any_hash(random), slot);
    const auto fill = [&] {
        for (Slot slot = 0; slot < 1000; ++slot) {
            if (!checked.has(slot)) checked.insert(next_hash(), slot);
        }
    };
    REQUIRE_THROWS_AS(fill(), std::length_error);
    REQUIRE(checked.size() - 2000 >= most_of_one_hash);
    REQUIRE(checked.size() - 2000 < 512);
    checked.check_all();
    REQUIRE_THROWS_AS(fill(), std::length_error);
    checked.check_all();

    checked.erase(3);
    checked.insert(next_hash(), 3);
    REQUIRE(checked.index.bytes() < 1'000'000);
    for (Slot slot = 3000; slot < 6000; ++slot) {
        const Hash hash = any_hash(random);
        if (hash >> 16 != upper >> 16) checked.insert(hash, slot);  // the others of that segment do not fit
    }
    checked.check_all();
}
