#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;
using vigil::DelayedQueue;
using vigil::DriveId;
using vigil::Driver;
using vigil::DueValue;
using vigil::Duration;
using vigil::KeyedItem;
using vigil::Loop;
using vigil::PriorityHashQueue;
using vigil::TimePoint;
using vigil::VirtualTime;

namespace {

/// How long a timer that is due every millisecond has to wait for its turn, in processor time of this thread: for how
/// long others have the processor is not the loop's fault.
class Watch {
   public:
    explicit Watch(Loop& loop) : loop_(loop), last_(used()) {
        timer_ = loop.add_periodic_timer(1ms, [this] { look(); });
    }
    ~Watch() { loop_.cancel_timer(timer_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    [[nodiscard]] std::chrono::nanoseconds longest_gap() const { return longest_; }
    [[nodiscard]] std::size_t rounds() const { return rounds_; }

   private:
    void look() {
        longest_ = std::max(longest_, used() - last_);
        last_ = used();
        ++rounds_;
    }
    static std::chrono::nanoseconds used() {
        timespec used{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
    }

    Loop& loop_;
    vigil::TimerId timer_;
    std::chrono::nanoseconds last_;
    std::chrono::nanoseconds longest_{};
    std::size_t rounds_ = 0;
};

/// A queue whose clock is 17 s ahead, so that the test need not wait.
struct Ahead {
    PriorityHashQueue& queue;
    [[nodiscard]] std::optional<TimePoint> next_due() const {
        const auto due = queue.next_due();
        return due ? std::optional(*due - 17s) : due;
    }
    template <class Sink>
    vigil::Evicted evict_due(TimePoint now, std::size_t limit, Sink&& sink) {
        return queue.evict_due(now + 17s, limit, sink);
    }
    [[nodiscard]] bool check() const { return queue.check(); }
};

// The budget is 1 ms, and putting one chunk in order may come on top. Without a budget a million items take hundreds.
constexpr auto never_this_late = 50ms;

}  // namespace

TEST_CASE("Driver hands each item over at its due, in order, and lets run() end when nothing is left") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    DelayedQueue<int> queue;
    std::vector<std::pair<int, TimePoint>> seen;
    Driver driver(loop);
    const DriveId id = driver.add(queue, [&](const DueValue<int>& due) { seen.emplace_back(due.value, loop.now()); });
    loop.run();  // empty: nothing to wait for
    REQUIRE(loop.now() == TimePoint{});

    queue.offer(loop.now(), 3, 3h);
    queue.offer(loop.now(), 1, 1us);
    queue.offer(loop.now(), 2, 1us);
    driver.changed(id);
    loop.run();
    REQUIRE(seen ==
            std::vector<std::pair<int, TimePoint>>{{1, TimePoint{1us}}, {2, TimePoint{1us}}, {3, TimePoint{3h}}});
}

TEST_CASE("Driver wakes up earlier when the head becomes earlier") {
    auto loop = Loop::with_virtual_time();
    int seen = 0;
    vigil::loop::DelayedQueue<int> queue(loop, [&](const DueValue<int>& due) { seen = due.value; });
    queue.offer(1, 1h);
    loop.advance(1min);
    queue.offer(2, 1min);
    loop.advance(1min - 1us);
    REQUIRE(seen == 0);
    loop.advance(1us);
    REQUIRE(seen == 2);
    queue.offer(3, -5s);
    loop.advance(0s);
    REQUIRE(seen == 3);
    loop.advance(58min);
    REQUIRE(seen == 1);
}

TEST_CASE("Driver drives several queues, each in its time") {
    auto loop = Loop::with_virtual_time();
    std::string seen;
    vigil::loop::DelayedQueue<char> delayed(loop, [&](const DueValue<char>& due) { seen += due.value; });
    vigil::loop::KeyedQueue keyed(loop, [&](const KeyedItem& item) { seen += item.key; });
    vigil::loop::SlotRing<char> ring(loop, {.tick = 10ms}, [&](const DueValue<char>& due) { seen += due.value; });
    delayed.offer('3', 3s);
    keyed.push("1", "", 1s);
    ring.put('2', 1999ms);
    keyed.push("4", "", 3001ms);
    loop.advance(1s);
    REQUIRE(seen == "1");
    loop.advance(999ms);
    REQUIRE(seen == "1");
    loop.advance(1ms);
    REQUIRE(seen == "12");
    loop.advance(1h);
    REQUIRE(seen == "1234");
}

TEST_CASE("Driver leaves a sink that refuses alone until it is resumed, and the others go on") {
    auto loop = Loop::with_virtual_time();
    std::deque<int> destination;
    vigil::loop::DelayedQueue<int> queue(loop, vigil::loop::into(destination, 3));
    int others = 0;
    vigil::loop::KeyedQueue other(loop, [&](const KeyedItem&) { ++others; });
    for (int value = 0; value < 8; ++value) queue.offer(value, 1s);
    other.push("a", "", 2s);
    loop.advance(3s);
    REQUIRE(destination == std::deque<int>{0, 1, 2});
    REQUIRE(queue.size() == 5);
    REQUIRE(others == 1);

    queue.offer(8, 0s);
    loop.advance(1h);
    REQUIRE(destination.size() == 3);
    destination.clear();
    queue.resume();
    queue.resume();
    loop.advance(0s);
    REQUIRE(destination == std::deque<int>{3, 4, 5});
    destination.clear();
    queue.resume();
    loop.advance(0s);
    REQUIRE(destination == std::deque<int>{6, 7, 8});
    REQUIRE(queue.empty());
}

TEST_CASE("Driver keeps run() going neither for an empty queue nor for a sink that refuses") {
    Loop loop;
    vigil::loop::DelayedQueue<int> queue(loop, [](const DueValue<int>&) { return false; });
    const auto handle = queue.offer(1, 1h);
    REQUIRE(queue.remove(handle) == 1);
    loop.run();
    queue.offer(1, 1ms);
    loop.run();
    REQUIRE(queue.size() == 1);
}

TEST_CASE("Driver keeps an item whose sink throws, and offers it again in the next run") {
    auto loop = Loop::with_virtual_time();
    bool broken = true;
    std::vector<int> seen;
    vigil::loop::DelayedQueue<int> queue(loop, [&](const DueValue<int>& due) {
        if (broken) throw std::runtime_error("broken");
        seen.push_back(due.value);
    });
    queue.offer(1, 1s);
    queue.offer(2, 1s);
    REQUIRE_THROWS_WITH(loop.advance(1s), "broken");
    REQUIRE(queue.size() == 2);
    broken = false;
    loop.advance(0s);
    REQUIRE(seen == std::vector<int>{1, 2});
}

TEST_CASE("Driver lets a sink change its queue, and remove and add queues") {
    auto loop = Loop::with_virtual_time();
    Driver& driver = loop.driver();
    std::string seen;
    DelayedQueue<char> queue, other;
    DriveId id{}, other_id{};
    id = driver.add(queue, [&](const DueValue<char>& due) {
        seen += due.value;
        if (due.value == 'a') queue.offer(loop.now(), 'b', 0s);
        if (due.value == 'b') {
            driver.remove(id);
            driver.remove(other_id);
            other_id = driver.add(other, [&](const DueValue<char>& added) { seen += added.value; });
        }
    });
    other_id = driver.add(other, [&](const DueValue<char>&) { seen += "removed"; });
    queue.offer(loop.now(), 'a', 1s);
    queue.offer(loop.now(), 'x', 1s);
    other.offer(loop.now(), 'c', 2s);
    driver.changed(id);
    driver.changed(other_id);
    loop.advance(1h);
    REQUIRE(seen == "axbc");
    driver.remove(other_id);
    driver.remove(other_id);
    driver.changed(other_id);
    driver.resume(id);
}

TEST_CASE("Driver shares its budget among queues: one that is flooded does not starve another") {
    auto loop = Loop::with_virtual_time();
    loop.driver().set_budget({.items = 100});
    std::size_t flood = 0, flood_when_other_came = 0;
    vigil::loop::DelayedQueue<int> flooded(loop, [&](const DueValue<int>&) { ++flood; });
    vigil::loop::DelayedQueue<int> other(loop, [&](const DueValue<int>&) { flood_when_other_came = flood; });
    for (int count = 0; count < 10'000; ++count) flooded.offer(count, 1s);
    other.offer(0, 1s);
    loop.advance(1s);
    REQUIRE(flood == 10'000);
    REQUIRE(flood_when_other_came < 100);
}

TEST_CASE("Driver goes on in the next turn when the budget of items is used up: ticks run in between") {
    auto loop = Loop::with_virtual_time();
    loop.driver().set_budget({.items = 10});
    std::size_t seen = 0, most_in_a_turn = 0, seen_before = 0;
    const auto each_turn = [&](auto& self) -> void {
        most_in_a_turn = std::max(most_in_a_turn, seen - seen_before);
        seen_before = seen;
        if (seen < 1000) loop.future_tick([&] { self(self); });
    };
    vigil::loop::DelayedQueue<int> queue(loop, [&](const DueValue<int>&) {
        if (++seen == 1) each_turn(each_turn);
    });
    for (int count = 0; count < 1000; ++count) queue.offer(count, 1s);
    loop.advance(1s);
    REQUIRE(seen == 1000);
    REQUIRE(most_in_a_turn <= 16);
}

TEST_CASE("Driver does not block the loop while a million items fall due in one millisecond") {
    Loop loop;
    std::size_t seen = 0, early = 0;
    TimePoint due;
    vigil::loop::KeyedQueue queue(loop, [&](const KeyedItem&) {
        ++seen;
        early += loop.now() < due;
    });
    constexpr std::size_t count = 1'000'000;
    due = loop.now() + 3s;
    std::vector<vigil::Push> batch;
    std::vector<std::string> keys;
    for (std::size_t pushed = 0; pushed < count; pushed += keys.size()) {
        keys.clear();
        batch.clear();
        for (std::size_t index = 0; index < 1000; ++index) keys.push_back(std::to_string(pushed + index));
        for (const auto& key : keys) batch.push_back({key, "data", due + Duration{batch.size()}});
        queue.push(batch);
    }
    REQUIRE(queue.size() == count);
    const Watch watch(loop);
    loop.add_timer(1ms, [&] {
        loop.add_periodic_timer(10ms, [&] {
            if (seen == count) loop.stop();
        });
    });
    loop.run();
    REQUIRE(seen == count);
    REQUIRE(early == 0);
    REQUIRE(watch.rounds() > 100);
    CHECK(watch.longest_gap() < never_this_late);
}

TEST_CASE("Driver does not block the loop while a million re-armed entries come up together") {
    Loop loop;
    PriorityHashQueue queue;
    std::size_t seen = 0;
    constexpr std::size_t count = 1'000'000;
    const TimePoint start = loop.now();
    for (std::size_t index = 0; index < count; ++index) queue.push(start, std::to_string(index), "", start + 17s);
    for (std::size_t index = 0; index < count; ++index) queue.push(start, std::to_string(index), "", start + 1h);
    queue.push(start, "last", "", start + 17s + 1ms);
    Ahead ahead{queue};
    const Watch watch(loop);
    Driver driver(loop);
    driver.add(ahead, [&](const KeyedItem& item) {
        seen += item.key == "last";
        loop.stop();
    });
    loop.run();
    REQUIRE(seen == 1);
    REQUIRE(queue.size() == count);
    REQUIRE(watch.rounds() > 5);
    CHECK(watch.longest_gap() < never_this_late);
}

TEST_CASE("A sink that refuses, but has made room and resumed its queue, is asked again") {
    auto loop = Loop::with_virtual_time();
    std::deque<int> box;
    int drained = 0;
    vigil::loop::DelayedQueue<int>* itself = nullptr;
    vigil::loop::DelayedQueue<int> queue(loop, [&](const DueValue<int>& due) {
        if (box.size() == 2) {
            drained += static_cast<int>(std::exchange(box, {}).size());
            itself->resume();
            return false;
        }
        box.push_back(due.value);
        return true;
    });
    itself = &queue;
    for (int value = 0; value < 5; ++value) queue.offer(value, 1ms);
    loop.advance(1s);
    REQUIRE(queue.empty());
    REQUIRE(drained == 4);
    REQUIRE(box == std::deque<int>{4});
}
