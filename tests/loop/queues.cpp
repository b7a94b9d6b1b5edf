#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <vector>
#include <vigil/vigil.hpp>

#include "failing_allocator.hpp"

using namespace std::chrono_literals;
using vigil::DueValue;
using vigil::KeyedItem;
using vigil::Loop;
using vigil::TimePoint;
using vigil::VirtualTime;

TEST_CASE("A KeyedQueue on a loop collapses pushes of one key into one item, after the last delay") {
    auto loop = Loop::with_virtual_time();
    std::vector<std::string> seen;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem& item) {
        seen.push_back(std::string(item.key) + "=" + std::string(item.data.front()));
    });
    queue.push("k", "1", 10s);
    loop.advance(9s);
    queue.push("k", "2", 10s);
    loop.advance(9s);
    REQUIRE(seen.empty());
    REQUIRE(queue.find("k")->pushes == 2);
    loop.advance(1s);
    REQUIRE(seen == std::vector<std::string>{"k=2"});
    REQUIRE(queue.empty());
}

TEST_CASE("A KeyedQueue on a loop takes a batch with dues of the loop's clock") {
    auto loop = Loop::with_virtual_time();
    loop.advance(1h);
    std::string seen;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem& item) { seen += item.key; });
    const vigil::Push batch[] = {{"b", "", loop.now() + 2s}, {"a", "", loop.now() + 1s}, {"c", "", loop.now()}};
    REQUIRE(queue.push(batch) == 3);
    loop.advance(0s);
    REQUIRE(seen == "c");
    loop.advance(2s);
    REQUIRE(seen == "cab");
}

TEST_CASE("A KeyedQueue on a loop whose items are cancelled lets run() end") {
    Loop loop;
    vigil::loop::KeyedQueue queue(loop, [](const KeyedItem&) {});
    queue.push("a", "", 1h);
    queue.push("b", "", 1h);
    REQUIRE(queue.cancel("a"));
    REQUIRE(queue.cancel("b"));
    REQUIRE_FALSE(queue.cancel("b"));
    loop.run();
}

TEST_CASE("A KeyedQueue on a loop can move an item, earlier and later") {
    auto loop = Loop::with_virtual_time();
    std::string seen;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem& item) { seen += item.key; });
    queue.push("a", "", 10s);
    queue.push("b", "", 10s);
    REQUIRE(queue.reschedule("a", 20s));
    REQUIRE(queue.reschedule("b", 1s));
    REQUIRE_FALSE(queue.reschedule("c", 1s));
    loop.advance(1s);
    REQUIRE(seen == "b");
    loop.advance(19s - 1us);
    REQUIRE(seen == "b");
    loop.advance(1us);
    REQUIRE(seen == "ba");
}

TEST_CASE("A sealed item leaves a KeyedQueue on a loop at once, though nothing was due") {
    auto loop = Loop::with_virtual_time();
    std::size_t pushes = 0;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem& item) { pushes += item.pushes; });
    queue.set_defaults({.max_count = 3});
    for (int count = 0; count < 3; ++count) queue.push("k", "", 1h);
    loop.advance(0s);
    REQUIRE(pushes == 3);
}

TEST_CASE("What a KeyedQueue hands over can be pushed again, for ever, and time goes on") {
    auto loop = Loop::with_virtual_time();
    int rounds = 0;
    vigil::loop::KeyedQueue* again = nullptr;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem& item) {
        ++rounds;
        again->push(item.key, item.data.front(), 1min);
    });
    again = &queue;
    queue.push("k", "data", 1min);
    loop.advance(1h);
    REQUIRE(rounds == 60);
    REQUIRE(queue.find("k")->data.front() == "data");
}

TEST_CASE("Nothing of a queue on a real loop is early") {
    Loop loop;
    int left = 300;
    bool early = false;
    using Clock = std::chrono::steady_clock;
    vigil::loop::DelayedQueue<Clock::time_point> delayed(loop, [&](const DueValue<Clock::time_point>& due) {
        early = early || Clock::now() < due.value;
        --left;
    });
    vigil::loop::SlotRing<Clock::time_point> ring(loop, {.tick = 1ms, .slots = 16},
                                                  [&](const DueValue<Clock::time_point>& due) {
                                                      early = early || Clock::now() < due.value;
                                                      --left;
                                                  });
    for (int count = 0; count < 150; ++count) {
        const auto delay = std::chrono::microseconds{count * 333};
        const auto before = Clock::now();
        delayed.offer(before + delay, delay);
        const auto again = Clock::now();
        ring.put(again + delay, delay);
    }
    loop.run();
    REQUIRE(left == 0);
    REQUIRE_FALSE(early);
}

TEST_CASE("A SlotRing on a loop fires at its ticks, and lets run() end when all is cancelled") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    std::vector<TimePoint> fired;
    vigil::loop::SlotRing<int> ring(loop, {.tick = 1s, .slots = 60},
                                    [&](const DueValue<int>&) { fired.push_back(loop.now()); });
    ring.put(1, 1ms);
    ring.put(2, 1h);
    const auto third = ring.put(3, 2h);
    *ring.find(third) = 4;
    REQUIRE(ring.cancel(third) == 4);
    REQUIRE_FALSE(ring.cancel(third));
    loop.run();
    REQUIRE(fired == std::vector<TimePoint>{TimePoint{1s}, TimePoint{1h}});
}

TEST_CASE("A RoundQueue on a loop is cleaned by itself, and keeps run() going only until then") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    vigil::loop::RoundQueue<int> queue(loop, {.dequeue_period = 1s, .ttl = 1h});
    for (int count = 0; count < 10'000; ++count) queue.put(std::to_string(count), count);
    REQUIRE(queue.take()->value == 0);
    REQUIRE(queue.find("7")->value == 7);
    REQUIRE(queue.remove("7") == 7);
    REQUIRE(queue.size() == 9999);
    loop.run();
    REQUIRE(queue.empty());
    REQUIRE(loop.now() == TimePoint{1h});
    REQUIRE_FALSE(queue.take());
    REQUIRE_FALSE(queue.next_available());
}

TEST_CASE("Due items move from queue to queue") {
    auto loop = Loop::with_virtual_time();
    std::string seen;
    vigil::loop::KeyedQueue last(loop, [&](const KeyedItem& item) {
        seen += std::string(item.key) + ":" + std::string(item.type);
        for (const auto fragment : item.data) seen += "," + std::string(fragment);
    });
    vigil::loop::KeyedQueue first(loop, vigil::loop::into(last, 5s));
    first.push("k", "1", 1s, {.type = "t", .mode = vigil::DataMode::append});
    first.push("k", "2", 1s, {.type = "t", .mode = vigil::DataMode::append});
    last.push("k", "0", 4s);

    vigil::loop::DelayedQueue<char> end(loop, [&](const DueValue<char>& due) { seen += due.value; });
    vigil::loop::SlotRing<char> ring(loop, {.tick = 1s}, vigil::loop::into(end, 1s));
    vigil::loop::DelayedQueue<char> start(loop, vigil::loop::into(ring, 1s));
    start.offer('!', 10s);

    loop.advance(6s);
    REQUIRE(seen == "k:t,0,1,2");
    loop.advance(6s - 1us);
    REQUIRE(seen == "k:t,0,1,2");
    loop.advance(1us);
    REQUIRE(seen == "k:t,0,1,2!");
}

TEST_CASE("A queue on a loop that is short of memory takes an item and hands it over in time, or is as it was") {
    std::size_t failures = 0;
    for (bool failed = true; failed; ++failures) {
        auto loop = Loop::with_virtual_time();
        int evicted = 0;
        vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem&) { ++evicted; });
        failed = false;
        try {
            const vigil::testing::AllocationsFailAfter limited{failures};
            queue.push("key", "data", 1s);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        REQUIRE(queue.size() == (failed ? 0 : 1));
        loop.advance(1h);
        REQUIRE(evicted == (failed ? 0 : 1));
    }
    REQUIRE(failures >= 3);
}

TEST_CASE("A value stays whole in its queue when there is no memory for it in the next one") {
    const std::string value = "a value that is too long to lie inside of a string";
    std::size_t failures = 0;
    for (bool failed = true; failed; ++failures) {
        auto loop = Loop::with_virtual_time();
        std::string seen;
        vigil::loop::DelayedQueue<std::string> end(loop, [&](const DueValue<std::string>& due) { seen = due.value; });
        vigil::loop::SlotRing<std::string> ring(loop, {.tick = 1ms}, vigil::loop::into(end, 1s));
        const auto put = vigil::loop::into(ring, 1s);
        vigil::loop::DelayedQueue<std::string> start(loop, [&](const DueValue<std::string>& due) {
            const vigil::testing::AllocationsFailAfter limited{failures};
            put(due);
        });
        start.offer(value, 1s);
        failed = false;
        try {
            loop.advance(1s);
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        REQUIRE(start.size() == (failed ? 1 : 0));
        if (failed) REQUIRE(start.peek()->value == value);
        if (!failed) loop.advance(1h);
        REQUIRE(seen == (failed ? "" : value));
    }
    REQUIRE(failures >= 2);
}
