#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "queue/slot_ring_helpers.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing::slot_ring;
using std::chrono::years;
using vigil::DueValue;
using vigil::Duration;
using vigil::Evicted;
using vigil::SlotRingOptions;
using vigil::TimePoint;
using vigil::testing::Random;

TEST_CASE("SlotRing at slot 310 puts what is 179 ahead into slot 489, and fires it there") {
    Ring ring;
    REQUIRE(ring.slots() == 3600);
    REQUIRE(ring.tick() == 1s);
    const TimePoint now{5min + 10s};
    REQUIRE(advance(ring, now).empty());
    REQUIRE(ring.slot_of(now) == 310);
    ring.put_after(now, 179s, 7);
    REQUIRE(ring.slot_of(now + 179s) == 489);
    REQUIRE(ring.next_due() == TimePoint{489s});
    REQUIRE(advance(ring, TimePoint{489s} - 1us).empty());
    REQUIRE(advance(ring, TimePoint{489s}) == Values{7});
}

TEST_CASE("SlotRing keeps a value for as many turns as its delay needs") {
    Ring ring;
    const TimePoint start{59min + 59s};
    REQUIRE(advance(ring, start).empty());
    const Duration delays[] = {1s, 1h - 1s, 1h, 1h + 1s, 2h + 1s, 2h + 59min, 100h + 1s, years{3} + 1s};
    int value = 0;
    for (const Duration delay : delays) ring.put_after(start, delay, value++);
    REQUIRE(ring.slot_of(start + 2h + 1s) == 0);
    value = 0;
    for (const Duration delay : delays) {
        REQUIRE(advance(ring, start + delay - 1us).empty());
        REQUIRE(advance(ring, start + delay) == Values{value++});
    }
    REQUIRE(ring.empty());
}

TEST_CASE("A slot follows from the due alone, before time zero too") {
    const Ring ring({.tick = 10ms, .slots = 7});
    REQUIRE(ring.slot_of(TimePoint{}) == 0);
    REQUIRE(ring.slot_of(TimePoint{1us}) == 1);
    REQUIRE(ring.slot_of(TimePoint{10ms}) == 1);
    REQUIRE(ring.slot_of(TimePoint{60ms + 1us}) == 0);
    REQUIRE(ring.slot_of(TimePoint{70ms}) == 0);
    REQUIRE(ring.slot_of(TimePoint{-1us}) == 0);
    REQUIRE(ring.slot_of(TimePoint{-10ms}) == 6);
    REQUIRE(ring.slot_of(TimePoint{-80ms}) == 6);
}

TEST_CASE("SlotRing fires at the first tick that is not before the due, at no microsecond before") {
    for (std::int64_t due = 900; due <= 2100; due = due == 1100 ? 1900 : due + 1) {
        CAPTURE(due);
        Ring ring({.tick = 1ms, .slots = 2});
        ring.put(TimePoint{Duration{due}}, 7);
        const TimePoint tick = fires_at(TimePoint{Duration{due}}, 1ms);
        expect(ring.next_due() <= tick, "the next due is not late");
        for (TimePoint now{500us}; now < tick; now += 1us) {
            expect(ring.advance(now, 10, take_all).items == 0, "nothing is early");
        }
        expect(ring.next_due() == tick, "the next due is the tick");
        expect(advance(ring, tick) == Values{7}, "it fires at its tick");
    }
}

TEST_CASE("SlotRing fires the values of a slot by due, equal ones in the order in which they were put") {
    Ring ring;
    const TimePoint dues[] = {TimePoint{4s + 1us}, TimePoint{5s},       TimePoint{4500ms},  TimePoint{4500ms},
                              TimePoint{5s},       TimePoint{4s + 2us}, TimePoint{4s + 1us}};
    for (int value = 0; value < 7; ++value) ring.put(dues[value], int{value});
    REQUIRE(advance(ring, TimePoint{4999ms}).empty());
    REQUIRE(advance(ring, TimePoint{5s}) == Values{0, 6, 5, 2, 3, 1, 4});
}

TEST_CASE("SlotRing keeps the order of a slot that holds thousands, put forwards, backwards and equal") {
    for (const int step : {1, -1, 0, 389}) {
        CAPTURE(step);
        Ring ring;
        std::multimap<TimePoint, int> expected;
        for (int value = 0; value < 5000; ++value) {
            const TimePoint due{9500ms + Duration{step * value % 5000}};
            ring.put(due, int{value});
            expected.emplace(due, value);
        }
        Values in_order;
        for (const auto& [due, value] : expected) in_order.push_back(value);
        REQUIRE(advance(ring, TimePoint{10s}) == in_order);
    }
}

TEST_CASE("SlotRing gives all that it missed, in order, however long it was away") {
    Random random;
    CAPTURE(random.seed());
    for (const Duration away : {Duration{100s}, Duration{1h}, Duration{30h}, Duration{years{50}}}) {
        Ring ring({.tick = 1s, .slots = 100});
        std::multimap<TimePoint, int> expected;
        for (int value = 0; value < 3000; ++value) {
            const TimePoint due{Duration{random.below(away.count())}};
            ring.put(due, int{value});
            expected.emplace(due, value);
        }
        Values in_order;
        for (const auto& [due, value] : expected) in_order.push_back(value);
        REQUIRE(advance(ring, TimePoint{away + 1s}) == in_order);
        REQUIRE(ring.empty());
        ring.put_after(TimePoint{away + 1s}, 5s, 7);
        REQUIRE(advance(ring, TimePoint{away + 10s}) == Values{7});
    }
}

TEST_CASE("SlotRing wraps at every slot: what is put at any position fires at its tick") {
    for (const int slots : {1, 2, 3, 64, 65, 3600}) {
        CAPTURE(slots);
        const int apart = slots > 100 ? 61 : 1;
        Ring ring({.tick = 1ms, .slots = static_cast<std::size_t>(slots)});
        for (int start = 0; start < slots; ++start) {
            const TimePoint now{1ms * (3 * slots * start + start)};
            expect(ring.advance(now, unlimited, take_all).items == 0, "all before has fired");
            int next = start % apart;
            for (int ahead = next; ahead <= 2 * slots; ahead += apart) ring.put(now + ahead * 1ms, int{ahead});
            while (!ring.empty()) {
                const TimePoint tick = *ring.next_due();
                expect(tick <= now + next * 1ms, "the next due is not late");
                ring.advance(tick, unlimited, [&](const DueValue<int>& item) {
                    expect(item.value == next && item.due == tick, "each fires at its tick");
                    next += apart;
                });
                expect(ring.empty() || *ring.next_due() > tick, "each call gets on");
            }
            expect(next > 2 * slots, "all fire");
        }
        expect(ring.check(), "check()");
    }
}

TEST_CASE("SlotRing with nothing in it has no next due, though it has been used") {
    Ring ring;
    REQUIRE_FALSE(ring.next_due());
    const auto handle = ring.put(TimePoint{5h}, 1);
    REQUIRE(ring.next_due());
    ring.cancel(handle);
    REQUIRE_FALSE(ring.next_due());
    ring.put(TimePoint{7s}, 2);
    REQUIRE(advance(ring, TimePoint{7s}) == Values{2});
    REQUIRE_FALSE(ring.next_due());
    REQUIRE(ring.entries() == 1);  // the cancelled one
    REQUIRE(advance(ring, TimePoint{5h}).empty());
    REQUIRE(ring.entries() == 0);
}

TEST_CASE("A driver that wakes at the next due wakes once for a tick, and seldom for nothing") {
    Random random;
    CAPTURE(random.seed());
    Ring ring;
    std::set<TimePoint> ticks;
    TimePoint now{12345h};
    for (int value = 0; value < 1000; ++value) {
        const TimePoint due = now + Duration{random.below(Duration{24h}.count())};
        ring.put(due, int{value});
        ticks.insert(fires_at(due, ring.tick()));
    }
    std::size_t wakes = 0, for_nothing = 0;
    while (const auto next = ring.next_due()) {
        expect(wakes == 0 || *next > now, "it gets on");
        now = std::max(now, *next);
        ++wakes;
        if (ring.advance(now, unlimited, take_all).items == 0) ++for_nothing;
    }
    REQUIRE(wakes == ticks.size() + for_nothing);
    REQUIRE(for_nothing < 50);
}

TEST_CASE("What is put into the past fires next, in order") {
    Ring ring;
    REQUIRE(advance(ring, TimePoint{1000s}).empty());
    ring.put(TimePoint{999s}, 3);
    ring.put(TimePoint{1000s}, 4);
    ring.put(TimePoint{1001s}, 6);
    ring.put(TimePoint{5s}, 2);
    ring.put(TimePoint{-5s}, 0);
    ring.put(TimePoint{-5s}, 1);
    ring.put(TimePoint{1000s}, 5);
    REQUIRE(*ring.next_due() <= TimePoint{1000s});
    REQUIRE(advance(ring, TimePoint{1000s}) == zero_to(6));
    REQUIRE(advance(ring, TimePoint{1001s}) == Values{6});
}

TEST_CASE("SlotRing keeps to the order at the beginning and the end of time") {
    for (const Duration tick : {Duration{1ms}, Duration{7ms}, Duration{1s}, Duration{1h}}) {
        CAPTURE(tick.count());
        Ring ring({.tick = tick, .slots = 10});
        ring.put(TimePoint::max(), 4);
        ring.put(TimePoint::max() - 1us, 3);
        ring.put(TimePoint::max() - tick, 2);
        ring.put(TimePoint::min() + 1us, 1);
        ring.put(TimePoint::min(), 0);
        ring.put(TimePoint::max(), 5);
        REQUIRE(ring.check());
        REQUIRE(advance(ring, TimePoint::min()).empty());  // no tick is there
        REQUIRE(*ring.next_due() < TimePoint::min() + tick);
        REQUIRE(advance(ring, TimePoint::min() + tick) == zero_to(2));
        REQUIRE(*ring.next_due() <= fires_at(TimePoint::max() - tick, tick));
        REQUIRE(advance(ring, TimePoint::max() - tick - 1us).empty());
        REQUIRE(advance(ring, TimePoint::max()) == Values{2, 3, 4, 5});
        ring.put(TimePoint::max(), 6);
        ring.put_after(TimePoint::max(), Duration::max(), 7);
        ring.put_after(TimePoint::max(), 0s, 8);
        REQUIRE(advance(ring, TimePoint::max()) == Values{6, 7, 8});
    }
}

TEST_CASE("SlotRing takes delays of years, fractions, and negative ones as none") {
    Ring ring;
    const TimePoint now{12345h};
    ring.put_after(now, years{1000}, 4);
    ring.put_after(now, years{5}, 3);
    ring.put_after(now, -5s, 0);
    ring.put_after(now, Duration::min(), 1);
    ring.put_after(now, std::chrono::duration<double>{0.25}, 2);
    ring.put_after(now, std::chrono::hours::max(), 5);
    REQUIRE(advance(ring, now) == Values{0, 1});
    REQUIRE(advance(ring, now + 1s) == Values{2});
    REQUIRE(advance(ring, now + years{5} - 1us).empty());
    REQUIRE(advance(ring, now + years{5} + 1s) == Values{3});
    REQUIRE(advance(ring, now + years{1000} + 1s) == Values{4});
    REQUIRE(advance(ring, TimePoint::max()) == Values{5});
}

TEST_CASE("SlotRing refuses a tick of less than a millisecond, and to have no slots") {
    REQUIRE_THROWS_AS(Ring({.tick = 999us}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.tick = 0us}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.tick = -1s}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.slots = 0}), std::invalid_argument);
    REQUIRE_NOTHROW(Ring({.tick = 1ms, .slots = 1}));
}

TEST_CASE("SlotRing stops at the limit and goes on where it stopped") {
    for (const std::size_t limit : {1, 2, 13, 14, 15, 100, 10'000}) {
        CAPTURE(limit);
        Ring ring({.tick = 1s, .slots = 10});
        int value = 0;
        for (const Duration due : {3s, 9s, 300s}) {
            for (int count = 0; count < 500; ++count) ring.put(TimePoint{due}, value++);
        }
        Values fired;
        std::size_t calls = 0;
        for (bool more = true; more; ++calls) {
            const Evicted evicted =
                ring.advance(TimePoint{400s}, limit, [&](const DueValue<int>& item) { fired.push_back(item.value); });
            expect(evicted.items <= limit, "the limit is kept");
            more = evicted.more;
            expect(more || ring.empty(), "there is more as long as anything is due");
            expect(ring.check(), "check()");
        }
        REQUIRE(fired == zero_to(1500));
        REQUIRE(calls <= 2 + 4 * 1500 / limit);
    }
}

TEST_CASE("SlotRing asked for nothing does nothing") {
    Ring ring;
    ring.put(TimePoint{1s}, 7);
    const Evicted evicted = ring.advance(TimePoint{5s}, 0, take_all);
    REQUIRE(evicted.items == 0);
    REQUIRE(evicted.more);
    REQUIRE(advance(ring, TimePoint{5s}) == Values{7});
}

TEST_CASE("SlotRing takes what is put into a slot that it has put in order by half") {
    Ring ring;
    for (int value = 0; value < 100; ++value) ring.put(TimePoint{5s}, 100 + value);
    REQUIRE(advance(ring, TimePoint{5s}, 20).empty());
    ring.put(TimePoint{5s}, 200);
    ring.put(TimePoint{4s}, 99);
    ring.put(TimePoint{6s}, 201);
    const auto cancelled = ring.put(TimePoint{5s}, -1);
    REQUIRE(ring.next_due() <= TimePoint{5s});
    REQUIRE(advance(ring, TimePoint{5s}, 20).empty());
    ring.cancel(cancelled);
    Values expected;
    for (int value = 99; value <= 200; ++value) expected.push_back(value);
    REQUIRE(advance(ring, TimePoint{5s}) == expected);
    REQUIRE(advance(ring, TimePoint{6s}) == Values{201});
}

TEST_CASE("SlotRing knows exactly when something is due in this turn, advanced or idle") {
    const TimePoint now{12345h};
    for (const Duration delay : {1s, 2s, 100s, 3599s}) {
        Ring advanced, idle;
        REQUIRE(advance(advanced, now).empty());
        advanced.put(now + delay, 7);
        REQUIRE(advanced.next_due() == now + delay);
        idle.put_after(now, delay, 7);
        REQUIRE(idle.next_due() == now + delay);
    }
}

TEST_CASE("SlotRing wakes early for a group of a later turn, at its first tick, until that has moved into the ring") {
    Ring ring;  // groups of 56 slots
    const TimePoint group{1s * (56 * 100)};
    ring.put(group + 50s, 1);
    ring.put(group + 55s, 2);
    REQUIRE(ring.next_due() == group);
    REQUIRE(advance(ring, group + 55s - 1h).empty());  // its last tick is a turn ahead
    REQUIRE(ring.next_due() == group);
    ring.put(group + 20s, 0);  // less than a turn ahead: into its slot
    REQUIRE(ring.next_due() == group);
    REQUIRE(advance(ring, group + 56s - 1h).empty());
    REQUIRE(ring.next_due() == group + 20s);
    REQUIRE(advance(ring, group + 20s) == Values{0});
    REQUIRE(ring.next_due() == group + 50s);
    REQUIRE(advance(ring, group + 55s) == Values{1, 2});
}

TEST_CASE("SlotRing of fewer than 128 slots is never early for what is not cancelled") {
    for (const std::size_t slots : {1, 2, 64, 127}) {
        Ring ring({.tick = 1s, .slots = slots});
        for (const Duration due : {1s, 63s, 64s, 127s, 128s, 129s, 12345s}) {
            ring.put(TimePoint{due}, 7);
            REQUIRE(ring.next_due() == TimePoint{due});
            REQUIRE(advance(ring, TimePoint{due}) == Values{7});
        }
    }
}

TEST_CASE("SlotRing moves a group of a later turn into the ring in pieces of the limit") {
    Ring ring;
    for (int value = 0; value < 1400; ++value) ring.put(TimePoint{2h + 10ms * value}, int{value});
    int calls = 1;
    while (ring.advance(TimePoint{90min}, 14, take_all).more) ++calls;
    REQUIRE(calls >= 100);
    REQUIRE(ring.next_due() == TimePoint{2h});
    REQUIRE(advance(ring, TimePoint{3h}) == zero_to(1400));
}

TEST_CASE("Many rings at once know nothing of each other") {
    std::vector<Ring> rings;
    for (int count = 0; count < 200; ++count) {
        rings.emplace_back(SlotRingOptions{.tick = 1ms * (1 + count), .slots = static_cast<std::size_t>(1 + count)});
    }
    for (int value = 0; value < 100; ++value) {
        for (auto& ring : rings) ring.put(TimePoint{10ms * value}, int{value});
    }
    for (std::size_t count = 0; count < rings.size(); ++count) {
        REQUIRE(advance(rings[count], TimePoint{10s}) == zero_to(100));
        for (std::size_t other = count + 1; other < rings.size(); ++other) expect(rings[other].size() == 100, "size");
    }
}

TEST_CASE("A SlotRing that is moved takes everything along, and its handles stay good") {
    Ring ring({.tick = 1s, .slots = 10});
    const auto handle = ring.put(TimePoint{5s}, -1);
    for (int value = 0; value < 100; ++value) ring.put(TimePoint{1s * value}, int{value});
    cancel_many(ring, TimePoint{8s});
    Ring moved(std::move(ring));
    REQUIRE(moved.check());
    REQUIRE(moved.size() == 101);
    REQUIRE(moved.slots() == 10);
    REQUIRE(moved.cancel(handle) == -1);
    cancel_many(moved, TimePoint{80s});
    REQUIRE(moved.check());
    REQUIRE(advance(moved, TimePoint{49s}) == zero_to(50));
    ring = std::move(moved);
    REQUIRE(ring.size() == 50);
    REQUIRE(ring.next_due() == TimePoint{50s});
    REQUIRE(advance(ring, TimePoint{1h}).size() == 50);
    ring.put(TimePoint{2h}, 7);
    REQUIRE(advance(ring, TimePoint{2h}) == Values{7});
}
