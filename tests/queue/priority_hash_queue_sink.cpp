#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_helpers.hpp"

using namespace std::chrono_literals;
using vigil::DataMode;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::TimePoint;
using vigil::testing::evict_all;
using vigil::testing::fill;
using vigil::testing::items_of;
using vigil::testing::key_of;
using vigil::testing::start;
using vigil::testing::text;
using vigil::testing::text_of;
using vigil::testing::Texts;
using vigil::testing::unlimited;

TEST_CASE("evict_due() hands over what is due, up to a limit") {
    PriorityHashQueue queue;
    fill(queue, 100, TimePoint{1s});
    Texts evicted;
    const auto sink = [&](const KeyedItem& item) { evicted.push_back(text(item)); };
    auto result = queue.evict_due(TimePoint{1s} + 49ms, 20, sink);
    REQUIRE(result.items == 20);
    REQUIRE(result.more);
    REQUIRE_FALSE(result.refused);
    REQUIRE(queue.size() == 80);
    result = queue.evict_due(TimePoint{1s} + 49ms, unlimited, sink);
    REQUIRE(result.items == 30);
    REQUIRE_FALSE(result.more);
    REQUIRE(evicted.size() == 50);
    REQUIRE(evicted.front() == "key 0=0");
    REQUIRE(evicted.back() == "key 49=49");
    result = queue.evict_due(TimePoint{1h}, 0, sink);
    REQUIRE(result.items == 0);
    REQUIRE(result.more);
    REQUIRE(queue.size() == 50);
}

TEST_CASE("evict_due() counts what it only puts in order towards its limit") {
    PriorityHashQueue queue;
    fill(queue, 1000, TimePoint{1s});
    for (int number = 0; number < 1000; ++number) queue.push(start, key_of(number), "", TimePoint{1h});
    queue.push(start, "due", "", TimePoint{2s});
    std::size_t calls = 1, items = 0;
    const auto next = [&] {
        const auto evicted = queue.evict_due(TimePoint{3s}, 10, [](const KeyedItem&) {});
        items += evicted.items;
        return evicted.more;
    };
    while (next()) ++calls;
    REQUIRE(items == 1);
    REQUIRE(calls >= 100);
    REQUIRE(calls <= 103);
    REQUIRE(queue.next_due() == TimePoint{1h});
}

TEST_CASE("What is left when a limit ended evict_due() and the others were cancelled is due as before") {
    constexpr int items = 2000;
    const int limit = GENERATE(1, 20);
    for (int stay = 1; stay <= 60; ++stay) {
        CAPTURE(limit, stay);
        PriorityHashQueue queue;
        for (int number = 0; number < items; ++number) queue.push(start, key_of(number), "", TimePoint{5s});
        queue.evict_due(TimePoint{5s}, static_cast<std::size_t>(limit), [](const KeyedItem&) { return false; });
        for (int number = 0; number < items - stay; ++number) queue.cancel(key_of(number));
        REQUIRE(queue.size() == static_cast<std::size_t>(stay));
        REQUIRE(queue.check());
        REQUIRE(queue.next_due() == TimePoint{5s});
        REQUIRE(queue.earliest()->key == key_of(items - stay));
        const auto evicted = evict_all(queue, TimePoint{5s});
        REQUIRE(evicted.size() == static_cast<std::size_t>(stay));
        REQUIRE(evicted.front() == key_of(items - stay) + "=");
    }
}

TEST_CASE("An item that a sink refuses stays, and is the first again") {
    PriorityHashQueue queue;
    for (const char* key : {"a", "b", "c", "d"}) queue.push(start, key, "1", TimePoint{*key == 'd' ? 3s : 2s});
    const auto before = items_of(queue);
    const auto evicted =
        queue.evict_due(TimePoint{5s}, unlimited, [](const KeyedItem& item) { return item.key < "b"; });
    REQUIRE(evicted.items == 1);
    REQUIRE(evicted.refused);
    REQUIRE_FALSE(evicted.more);
    REQUIRE(items_of(queue) == std::vector(before.begin() + 1, before.end()));
    REQUIRE(queue.find("b"));
    REQUIRE(queue.check());
    REQUIRE(queue.evict_due(TimePoint{5s}, unlimited, [](const KeyedItem&) { return false; }).refused);
    REQUIRE(evict_all(queue, TimePoint{5s}) == Texts{"b=1", "c=1", "d=1"});
}

TEST_CASE("An item whose sink throws stays, and is the first again") {
    PriorityHashQueue queue;
    for (const char* key : {"a", "b", "c"}) queue.push(start, key, "1", TimePoint{2s});
    const auto before = items_of(queue);
    const auto throws_at_b = [](const KeyedItem& item) {
        if (item.key == "b") throw std::runtime_error("b");
    };
    REQUIRE_THROWS_AS(queue.evict_due(TimePoint{5s}, unlimited, throws_at_b), std::runtime_error);
    REQUIRE(items_of(queue) == std::vector(before.begin() + 1, before.end()));
    REQUIRE(queue.find("b"));
    REQUIRE(queue.check());
    REQUIRE(evict_all(queue, TimePoint{5s}) == Texts{"b=1", "c=1"});
}

TEST_CASE("In a sink the item has left: its key is not there, and a push of it opens a new one") {
    PriorityHashQueue queue;
    queue.push(start, "k", "a", TimePoint{2s}, {.type = "t"});
    queue.push(start, "k", "b", TimePoint{2s}, {.type = "t", .mode = DataMode::append});
    queue.push(start, "next", "n", TimePoint{2s});
    Texts offered;
    const bool refuses = GENERATE(false, true);
    const auto sink = [&](const KeyedItem& item) {
        offered.push_back(text(item));
        if (item.key != "k") return true;
        REQUIRE_FALSE(queue.find("k"));
        REQUIRE_FALSE(queue.cancel("k"));
        REQUIRE_FALSE(queue.reschedule(TimePoint{2s}, "k", TimePoint{9s}));
        REQUIRE(queue.push(TimePoint{2s}, "k", "new", TimePoint{9s}, {.mode = DataMode::append}).inserted);
        REQUIRE_FALSE(queue.push(TimePoint{2s}, "k", "er", TimePoint{9s}, {.mode = DataMode::append}).inserted);
        REQUIRE(text_of(queue, "k") == "k=new,er");
        REQUIRE(text(item) == "k=a,b");
        REQUIRE(item.type == "t");
        return !refuses;
    };
    const auto evicted = queue.evict_due(TimePoint{2s}, unlimited, sink);
    REQUIRE(queue.check());
    REQUIRE(evicted.refused == refuses);
    REQUIRE(text_of(queue, "k") == "k=new,er");
    REQUIRE(queue.find("k")->pushes == 2);
    if (!refuses) {
        REQUIRE(offered == Texts{"k=a,b", "next=n"});
        REQUIRE(queue.size() == 1);
    } else {
        REQUIRE(queue.size() == 3);
        REQUIRE(evict_all(queue, TimePoint{2s}) == Texts{"k=a,b", "next=n"});
    }
    REQUIRE(queue.cancel("k"));
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
}

TEST_CASE("An item that is refused by a sink that pushed its key is sealed") {
    PriorityHashQueue queue;
    queue.push(start, "k", "old", TimePoint{2s});
    const bool throws = GENERATE(false, true);
    const auto sink = [&](const KeyedItem&) {
        queue.push(TimePoint{2s}, "k", "new", TimePoint{9s});
        if (throws) throw std::runtime_error("sink");
        return false;
    };
    try {
        queue.evict_due(TimePoint{3s}, unlimited, sink);
    } catch (const std::runtime_error&) {
        REQUIRE(throws);
    }
    REQUIRE(queue.check());
    REQUIRE(queue.earliest()->sealed);
    REQUIRE(queue.earliest()->due == TimePoint{2s});
    REQUIRE(text_of(queue, "k") == "k=new");
    REQUIRE(queue.cancel("k"));
    REQUIRE_FALSE(queue.cancel("k"));
    REQUIRE(evict_all(queue, TimePoint{2s}) == Texts{"k=old"});
}

TEST_CASE("What was due and refused can be moved later and earlier") {
    PriorityHashQueue queue;
    constexpr int items = 3000;
    for (int number = 0; number < items; ++number) queue.push(start, key_of(number), "", TimePoint{5s});
    queue.evict_due(TimePoint{5s}, unlimited, [](const KeyedItem&) { return false; });
    Texts expected;
    for (int number = 0; number < items; ++number) {
        const TimePoint due{number % 3 == 0 ? 6s : 4s};
        if (number % 2 == 0) queue.push(TimePoint{5s}, key_of(number), "new", due);
        if (number % 2 == 1) queue.reschedule(TimePoint{5s}, key_of(number), due);
        if (number % 3 == 0) expected.push_back(key_of(number) + (number % 2 == 0 ? "=new" : "="));
    }
    REQUIRE(queue.check());
    REQUIRE(evict_all(queue, TimePoint{4s}).size() == items - expected.size());
    REQUIRE(evict_all(queue, TimePoint{6s} - 1us).empty());
    REQUIRE(evict_all(queue, TimePoint{6s}) == expected);
    REQUIRE(queue.empty());
}

TEST_CASE("A sink may cancel, move and push other keys") {
    PriorityHashQueue queue;
    for (const char* key : {"a", "b", "c", "d"}) queue.push(start, key, "1", TimePoint{2s});
    Texts offered;
    queue.evict_due(TimePoint{3s}, unlimited, [&](const KeyedItem& item) {
        offered.push_back(text(item));
        if (item.key != "a") return;
        REQUIRE(queue.cancel("b"));
        REQUIRE(queue.reschedule(TimePoint{3s}, "c", TimePoint{9s}));
        queue.push(TimePoint{3s}, "before d", "2", TimePoint{1s});
        queue.push(TimePoint{3s}, "after d", "2", TimePoint{3s});
        for (int number = 0; number < 3000; ++number) queue.push(TimePoint{3s}, key_of(number), "", TimePoint{8s});
        REQUIRE(text(item) == "a=1");
    });
    REQUIRE(offered == Texts{"a=1", "before d=2", "d=1", "after d=2"});
    REQUIRE(queue.size() == 3001);
    REQUIRE(queue.check());
}

TEST_CASE("A sink that evicts gets nothing") {
    PriorityHashQueue queue;
    for (const char* key : {"a", "b"}) queue.push(start, key, "1", TimePoint{2s});
    const auto evicted = queue.evict_due(TimePoint{3s}, unlimited, [&](const KeyedItem&) {
        const auto inside = queue.evict_due(TimePoint{3s}, unlimited, [](const KeyedItem&) { FAIL("called inside"); });
        REQUIRE(inside.items == 0);
        REQUIRE_FALSE(inside.refused);
        REQUIRE_FALSE(inside.more);
        REQUIRE_FALSE(queue.evict(TimePoint{3s}));
    });
    REQUIRE(evicted.items == 2);
    queue.push(start, "c", "1", TimePoint{2s});
    REQUIRE(evict_all(queue, TimePoint{3s}) == Texts{"c=1"});
}

TEST_CASE("A sink that pushes what is due at once ends at the limit") {
    PriorityHashQueue queue;
    queue.push(start, "k", "", TimePoint{2s});
    const auto evicted = queue.evict_due(
        TimePoint{2s}, 100, [&](const KeyedItem& item) { queue.push(TimePoint{2s}, item.key, "", TimePoint{2s}); });
    REQUIRE(evicted.items == 100);
    REQUIRE(evicted.more);
    REQUIRE(queue.size() == 1);
}
