#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "queue/slot_ring_helpers.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing::slot_ring;
using vigil::DueValue;
using vigil::Evicted;
using vigil::TimePoint;

TEST_CASE("What a sink refuses stays, and is the first one again") {
    Ring ring;
    for (int value = 0; value < 5; ++value) ring.put(TimePoint{5s}, int{value});
    const auto refused = ring.put(TimePoint{5s}, 5);
    Values offered;
    const auto take_two = [&](const DueValue<int>& item) {
        offered.push_back(item.value);
        return offered.size() <= 2;
    };
    const Evicted evicted = ring.advance(TimePoint{5s}, unlimited, take_two);
    REQUIRE(evicted.items == 2);
    REQUIRE(evicted.refused);
    REQUIRE_FALSE(evicted.more);
    REQUIRE(offered == zero_to(3));
    REQUIRE(ring.size() == 4);
    REQUIRE(ring.next_due() <= TimePoint{5s});
    REQUIRE(ring.check());
    REQUIRE(ring.cancel(refused) == 5);
    REQUIRE(advance(ring, TimePoint{9s}) == Values{2, 3, 4});
}

TEST_CASE("A refused value can still be cancelled") {
    Ring ring;
    const auto handle = ring.put(TimePoint{5s}, 7);
    ring.put(TimePoint{5s}, 8);
    REQUIRE(ring.advance(TimePoint{5s}, 10, [](const DueValue<int>&) { return false; }).refused);
    REQUIRE(ring.cancel(handle) == 7);
    REQUIRE(advance(ring, TimePoint{5s}) == Values{8});
}

TEST_CASE("What a sink throws comes through, and the value stays") {
    Ring ring;
    const auto handle = ring.put(TimePoint{5s}, 0);
    ring.put(TimePoint{5s}, 1);
    for (int count = 0; count < 2; ++count) {
        REQUIRE_THROWS_AS(ring.advance(TimePoint{5s}, 10, [](const DueValue<int>&) { throw std::logic_error("no"); }),
                          std::logic_error);
        REQUIRE(ring.size() == 2);
        REQUIRE(*ring.find(handle) == 0);
        REQUIRE(ring.check());
    }
    REQUIRE(advance(ring, TimePoint{5s}) == zero_to(2));
}

TEST_CASE("A sink that cancels what it is given finds it gone, and may cancel and put others") {
    Ring ring;
    std::vector<Ring::Handle> handles;
    for (int value = 0; value < 10; ++value) handles.push_back(ring.put(TimePoint{5s + 1us * value}, int{value}));
    handles.push_back(ring.put(TimePoint{20s}, 10));
    Values fired;
    ring.advance(TimePoint{10s}, unlimited, [&](const DueValue<int>& item) {
        fired.push_back(item.value);
        if (item.value < 10) {
            const auto own = handles[static_cast<std::size_t>(item.value)];
            expect(!ring.cancel(own) && ring.find(own) == nullptr, "its own handle is stale");
        }
        if (item.value == 0) {
            ring.put(TimePoint{10s}, 12);  // after all of them
            ring.put(TimePoint{1s}, 11);   // before all of them
            ring.put(TimePoint{30s}, 13);  // not yet
            expect(ring.cancel(handles[3]) == 3, "one that is about to fire");
            expect(ring.cancel(handles[10]) == 10, "one that is not");
        }
        if (item.value == 11) ring.put(TimePoint{1s}, 14);
    });
    REQUIRE(fired == Values{0, 11, 14, 1, 2, 4, 5, 6, 7, 8, 9, 12});
    REQUIRE(ring.check());
    REQUIRE(advance(ring, TimePoint{60s}) == Values{13});
    REQUIRE(ring.entries() == 0);
}

TEST_CASE("A sink may put earlier values before it refuses: then these are the first") {
    Ring ring;
    ring.put(TimePoint{5s}, 2);
    REQUIRE(ring.advance(TimePoint{5s}, 10,
                         [&](const DueValue<int>&) {
                             ring.put(TimePoint{4s}, 1);
                             return false;
                         })
                .refused);
    REQUIRE(ring.check());
    REQUIRE(advance(ring, TimePoint{5s}) == Values{1, 2});
}

TEST_CASE("A sink that puts a value due now for each one that it gets is stopped by the limit") {
    Ring ring;
    ring.put(TimePoint{5s}, 0);
    for (int count = 0; count < 10; ++count) {
        const Evicted evicted = ring.advance(
            TimePoint{5s}, 100, [&](const DueValue<int>& item) { ring.put_after(TimePoint{5s}, 0s, item.value + 1); });
        REQUIRE(evicted.items <= 100);
        REQUIRE(evicted.items >= 40);
        REQUIRE(evicted.more);
        REQUIRE(ring.size() == 1);
        REQUIRE(ring.entries() == 1);
    }
}

TEST_CASE("SlotRing advanced by its own sink does nothing") {
    Ring ring;
    ring.put(TimePoint{5s}, 1);
    ring.put(TimePoint{6s}, 2);
    int inside = 0;
    const Evicted evicted = ring.advance(TimePoint{5s}, unlimited, [&](const DueValue<int>&) {
        const Evicted nothing = ring.advance(TimePoint{10s}, unlimited, [&](const DueValue<int>&) { ++inside; });
        expect(nothing.items == 0 && !nothing.refused && !nothing.more, "it says so");
    });
    REQUIRE(evicted.items == 1);
    REQUIRE(inside == 0);
    REQUIRE(advance(ring, TimePoint{10s}) == Values{2});
}
