#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#include <vigil/core/hash.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/round_queue.hpp>
#include <vigil/queue/slot_list.hpp>

#include "failing_allocator.hpp"
#include "queue/checked_round_queue.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using vigil::Delay;
using vigil::Duration;
using vigil::RoundItem;
using vigil::RoundQueue;
using vigil::RoundQueueOptions;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;
using namespace vigil::testing::round;

namespace {

/// The id of what is taken, or "none".
template <class Queue>
std::string taken(Queue& queue, TimePoint now) {
    const auto view = queue.take(now);
    return view ? std::string(view->id) : "none";
}

/// A value that cannot be moved away, only copied.
struct Copied {
    Copied() noexcept = default;
    explicit Copied(std::shared_ptr<int> shared) noexcept : pointer(std::move(shared)) {}
    Copied(const Copied&) noexcept = default;
    Copied& operator=(const Copied&) noexcept = default;
    ~Copied() = default;

    std::shared_ptr<int> pointer;
};

struct Settings {
    Delay dequeue_period;
    Delay ttl;
    TimePoint start;
};

}  // namespace

TEST_CASE("RoundQueue goes through the steps of its origin: create, dequeue, clean") {
    RoundQueue<std::string> queue({.dequeue_period = 10s, .ttl = 60s});

    // Create: the data by its id, the creation time, and a last dequeuing of 0, which puts it in front.
    REQUIRE(queue.put(TimePoint{100s}, "a", "first"));
    REQUIRE(queue.put(TimePoint{101s}, "b", "second"));
    REQUIRE(queue.size() == 2);
    REQUIRE(queue.find("a")->created == TimePoint{100s});
    REQUIRE_FALSE(queue.find("a")->last_taken);
    REQUIRE(queue.next_available() == TimePoint{100s});

    // Dequeue: the lowest score first; it gets the current time, which makes it the last one.
    {
        const auto item = queue.take(TimePoint{102s});
        REQUIRE(item->id == "a");
        REQUIRE(item->value == "first");
        REQUIRE(item->created == TimePoint{100s});
        REQUIRE(item->last_taken == TimePoint{102s});
        REQUIRE(item->times_taken == 1);
    }
    REQUIRE(queue.size() == 2);
    REQUIRE(taken(queue, TimePoint{103s}) == "b");
    // The lowest score is greater than the current time less the period: there is nothing to hand out.
    REQUIRE(taken(queue, TimePoint{112s} - 1us) == "none");
    REQUIRE(queue.next_available() == TimePoint{112s});
    REQUIRE(taken(queue, TimePoint{112s}) == "a");
    REQUIRE(queue.find("a")->times_taken == 2);
    REQUIRE(taken(queue, TimePoint{112s}) == "none");
    // A new one comes before all that were taken.
    REQUIRE(queue.put(TimePoint{120s}, "c", "third"));
    REQUIRE(taken(queue, TimePoint{120s}) == "c");
    REQUIRE(taken(queue, TimePoint{120s}) == "b");

    // Clean: those that were created up to the current time less the ttl are removed from everything.
    REQUIRE(queue.next_expiry() == TimePoint{160s});
    REQUIRE(queue.clean(TimePoint{160s} - 1us, unlimited) == 0);
    REQUIRE(queue.clean(TimePoint{161s}, unlimited) == 2);
    REQUIRE_FALSE(queue.find("a"));
    REQUIRE_FALSE(queue.find("b"));
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.next_expiry() == TimePoint{180s});
    REQUIRE(taken(queue, TimePoint{161s}) == "c");
    REQUIRE(taken(queue, TimePoint{179s}) == "c");
    REQUIRE(queue.clean(TimePoint{180s}, unlimited) == 1);
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
}

TEST_CASE("RoundQueue hands out in order, none too early, none expired, none lost, and tells its observer all") {
    Random random;
    CAPTURE(random.seed());
    const Settings all[] = {
        {0s, Delay::longest, TimePoint{}},       {0s, 3ms, TimePoint{}},           {0s, 0s, TimePoint{-1s}},
        {5us, Delay::longest, TimePoint{-10s}},  {5us, 3ms, TimePoint{12345h}},    {200us, 100us, TimePoint{}},
        {2ms, Delay::longest, TimePoint::min()}, {2ms, 30ms, TimePoint::min()},    {1ms, 20s, TimePoint{-1s}},
        {1ms, 20ms, TimePoint::max() - 1min},    {1s, 10s, TimePoint::max() - 1s}, {Delay::longest, 10ms, TimePoint{}},
    };
    for (const auto& [period, ttl, start] : all) {
        for (const std::size_t around : {5, 100, 2000}) {
            CAPTURE(period.value().count(), ttl.value().count(), start, around);
            CheckedQueue checked({.dequeue_period = period, .ttl = ttl}, start);
            for (int step = 0; step < 30'000; ++step) {
                random_step(checked, random, around);
                checked.compare();
                if (step % 3000 == 0) checked.check();
            }
            checked.check();
            while (checked.size() > 0) checked.remove(std::string(checked.mirror.begin()->second.id));
            checked.check();
        }
    }
}

TEST_CASE("RoundQueue hands out new items before taken ones, each group in its order, though time stands still") {
    RoundQueue<int> queue;
    const TimePoint now{5s};
    for (const char* id : {"a", "b", "c"}) queue.put(now, id, 1);
    REQUIRE(taken(queue, now) == "a");
    queue.put(now, "d", 1);
    for (const char* id : {"b", "c", "d", "a", "b", "c", "d", "a"}) REQUIRE(taken(queue, now) == id);
}

TEST_CASE("An item that is put again has its new value and is as if new, behind the new ones that wait") {
    RoundQueue<int> queue({.dequeue_period = 1h, .ttl = 60s});
    for (const char* id : {"a", "b", "c"}) queue.put(TimePoint{1s}, id, 1);
    REQUIRE(taken(queue, TimePoint{2s}) == "a");
    REQUIRE_FALSE(queue.put(TimePoint{3s}, "a", 2));
    REQUIRE(queue.size() == 3);
    {
        const auto again = queue.find("a");
        REQUIRE(again->value == 2);
        REQUIRE(again->created == TimePoint{3s});
        REQUIRE_FALSE(again->last_taken);
        REQUIRE(again->times_taken == 0);
    }
    REQUIRE_FALSE(queue.put(TimePoint{4s}, "b", 2));
    for (const char* id : {"c", "a", "b", "none"}) REQUIRE(taken(queue, TimePoint{5s}) == id);
    REQUIRE(queue.clean(TimePoint{61s}, unlimited) == 1);
    REQUIRE_FALSE(queue.find("c"));
    REQUIRE(queue.clean(TimePoint{63s}, unlimited) == 1);
    REQUIRE_FALSE(queue.find("a"));
    REQUIRE(queue.check());
}

TEST_CASE("RoundQueue never hands out what has expired, though nobody has cleaned") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    for (int number = 0; number < 1000; ++number) queue.put(TimePoint{0s}, std::to_string(number), int{number});
    queue.put(TimePoint{1s}, "younger", 1);
    REQUIRE(taken(queue, TimePoint{10s} - 1us) == "0");
    REQUIRE(taken(queue, TimePoint{10s}) == "younger");
    REQUIRE(queue.size() == 2);
    REQUIRE(queue.find("0"));
    REQUIRE(taken(queue, TimePoint{10s}) == "none");
    REQUIRE(queue.size() == 1);
    REQUIRE(taken(queue, TimePoint{11s}) == "none");
    REQUIRE(queue.empty());
    REQUIRE_FALSE(queue.next_available());
    REQUIRE_FALSE(queue.next_expiry());
    REQUIRE(queue.check());
}

TEST_CASE("RoundQueue cleans the oldest first, and no more than it was asked for") {
    RoundQueue<int> queue({.ttl = 10s});
    for (int number = 0; number < 100; ++number) {
        queue.put(TimePoint{Duration{number}}, std::to_string(number), int{number});
    }
    for (int count = 0; count < 30; ++count) (void)queue.take(TimePoint{1s});
    queue.put(TimePoint{1s}, "5", 5);
    REQUIRE(queue.clean(TimePoint{10s + 50us}, 0) == 0);
    REQUIRE(queue.clean(TimePoint{10s + 50us}, 10) == 10);
    REQUIRE_FALSE(queue.find("10"));
    REQUIRE(queue.find("5"));
    REQUIRE(queue.find("11"));
    REQUIRE(queue.next_expiry() == TimePoint{10s + 11us});
    REQUIRE(queue.clean(TimePoint{10s + 50us}, unlimited) == 40);
    REQUIRE(queue.find("51"));
    REQUIRE(queue.size() == 50);
    REQUIRE(queue.clean(TimePoint{20s}, unlimited) == 50);
    REQUIRE(queue.empty());
}

TEST_CASE("Without a ttl nothing expires, even at the end of time") {
    RoundQueue<int> queue;
    queue.put(TimePoint::min(), "a", 1);
    queue.put(TimePoint{1s}, "b", 1);
    REQUIRE_FALSE(queue.next_expiry());
    REQUIRE(queue.clean(TimePoint::max(), unlimited) == 0);
    REQUIRE(taken(queue, TimePoint::max()) == "a");
    REQUIRE(taken(queue, TimePoint::max()) == "b");
}

TEST_CASE("If time goes backwards, the latest time that RoundQueue has seen counts") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    queue.put(TimePoint{100s}, "a", 1);
    queue.put(TimePoint{50s}, "b", 1);
    REQUIRE(queue.find("b")->created == TimePoint{100s});
    REQUIRE(queue.take(TimePoint{20s})->last_taken == TimePoint{100s});
    REQUIRE(queue.clean(TimePoint{110s}, 1) == 1);
    REQUIRE(queue.clean(TimePoint{0s}, unlimited) == 1);
    REQUIRE(queue.check());
}

TEST_CASE("A negative period or ttl counts as 0") {
    RoundQueue<int> queue({.dequeue_period = -5s});
    queue.put(TimePoint{1s}, "a", 1);
    for (int count = 0; count < 3; ++count) REQUIRE(taken(queue, TimePoint{1s}) == "a");
    REQUIRE(queue.next_available() == TimePoint{1s});

    RoundQueue<int> short_lived({.ttl = Duration::min()});
    short_lived.put(TimePoint{1s}, "a", 1);
    REQUIRE(short_lived.next_expiry() == TimePoint{1s});
    REQUIRE(taken(short_lived, TimePoint{1s}) == "none");
    REQUIRE(short_lived.empty());
}

TEST_CASE("An empty RoundQueue has nothing to give") {
    RoundQueue<int> queue({.ttl = 1s});
    REQUIRE(queue.empty());
    REQUIRE(queue.bytes() == 0);
    REQUIRE_FALSE(queue.take(TimePoint::max()));
    REQUIRE(queue.clean(TimePoint::max(), unlimited) == 0);
    REQUIRE_FALSE(queue.remove("a"));
    REQUIRE_FALSE(queue.find("a"));
    REQUIRE_FALSE(queue.next_available());
    REQUIRE_FALSE(queue.next_expiry());
    REQUIRE(queue.check());
}

TEST_CASE("Any bytes are an id: none, zeroes, 64 KiB") {
    RoundQueue<int> queue;
    const std::string ids[] = {"",         std::string(1, '\0'),        std::string(2, '\0'),
                               "\xff\xfe", std::string(64 * 1024, 'x'), std::string(64 * 1024, 'x') + 'y'};
    int number = 0;
    for (const std::string& id : ids) REQUIRE(queue.put(TimePoint{}, id, number++));
    REQUIRE_FALSE(queue.put(TimePoint{}, std::string_view{}, 0));
    REQUIRE(queue.size() == std::size(ids));
    REQUIRE(queue.check());
    REQUIRE(queue.bytes() > 2 * 64 * 1024);
    number = 0;
    for (const std::string& id : ids) {
        REQUIRE(queue.find(id)->id == id);
        REQUIRE(queue.remove(id) == number++);
        REQUIRE_FALSE(queue.find(id));
    }
    REQUIRE(queue.empty());
    queue.put(TimePoint{}, "short", 1);
    REQUIRE(queue.bytes() < 64 * 1024);
}

TEST_CASE("A value may be large, and its memory is given back with it") {
    RoundQueue<std::string> queue;
    const std::string large(16 * 1024 * 1024, 'v');
    queue.put(TimePoint{}, "a", std::string(large));
    REQUIRE(queue.take(TimePoint{})->value == large);
    queue.put(TimePoint{}, "a", "small");
    REQUIRE(queue.find("a")->value.capacity() < 100);
    queue.put(TimePoint{}, "b", std::string(large));
    REQUIRE(queue.remove("b") == large);
    queue.put(TimePoint{}, "c", "small");
    REQUIRE(queue.find("c")->value.capacity() < 100);
}

TEST_CASE("One id put a million times is one item, and takes no more memory") {
    RoundQueue<int> queue({.ttl = 1s});
    const std::string id(100, 'x');
    queue.put(TimePoint{}, id, 0);
    const auto bytes = queue.bytes();
    for (int count = 1; count <= 1'000'000; ++count) {
        queue.put(TimePoint{Duration{count}}, id, int{count});
        if (count % 3 == 0) (void)queue.take(TimePoint{Duration{count}});
    }
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.bytes() == bytes);
    REQUIRE(queue.check());
    REQUIRE(queue.find(id)->value == 1'000'000);
    REQUIRE(queue.next_expiry() == TimePoint{2s});
}

TEST_CASE("Items that come and go use the memory of those that went") {
    RoundQueue<int> queue({.ttl = 1s});
    std::size_t bytes = 0;
    for (int round = 0; round < 20; ++round) {
        for (int number = 0; number < 1000; ++number) {
            queue.put(TimePoint{round * 1s}, std::to_string(round * 1000 + number), int{number});
        }
        if (round == 0) bytes = queue.bytes();
        REQUIRE(queue.clean(TimePoint{round * 1s + 1s}, unlimited) == 1000);
    }
    REQUIRE(queue.bytes() == bytes);
    REQUIRE(queue.check());
}

TEST_CASE("Two ids with one hash are two items") {
    constexpr std::uint64_t seed = 1;
    std::unordered_map<std::uint32_t, std::string> by_hash;
    std::string first, second;
    for (int number = 0; second.empty(); ++number) {
        const std::string id = std::to_string(10'000'000 + number);  // all of one length
        const auto [known, added] = by_hash.emplace(static_cast<std::uint32_t>(vigil::hash_bytes(id, seed)), id);
        if (added) continue;
        first = known->second;
        second = id;
    }
    RoundQueue<int> queue({.hash_seed = seed});
    REQUIRE(queue.put(TimePoint{}, first, 1));
    REQUIRE(queue.put(TimePoint{}, second, 2));
    REQUIRE(queue.find(first)->value == 1);
    REQUIRE(queue.find(second)->value == 2);
    REQUIRE(queue.check());
    REQUIRE(queue.remove(first) == 1);
    REQUIRE(queue.find(second)->value == 2);
}

TEST_CASE("An id that is a view of the queue's own is as good as any") {
    RoundQueue<int> queue;
    queue.put(TimePoint{}, std::string(100, 'x'), 1);
    const auto view = queue.take(TimePoint{});
    REQUIRE_FALSE(queue.put(TimePoint{}, view->id, 2));
    REQUIRE(queue.put(TimePoint{}, queue.find(view->id)->id.substr(1), 3));
    REQUIRE(queue.remove(queue.take(TimePoint{})->id) == 2);
    REQUIRE(taken(queue, TimePoint{}) == std::string(99, 'x'));
    REQUIRE(queue.check());
}

TEMPLATE_TEST_CASE("RoundQueue destroys the values that it still holds, and keeps none that went", "",
                   std::shared_ptr<int>, Copied) {
    const auto value = std::make_shared<int>(7);
    {
        RoundQueue<TestType> queue({.ttl = 1s});
        for (const char* id : {"a", "b", "c", "d"}) queue.put(TimePoint{}, id, TestType(value));
        REQUIRE(value.use_count() == 5);
        queue.put(TimePoint{1us}, "a", TestType(nullptr));
        REQUIRE(value.use_count() == 4);
        REQUIRE(queue.remove("b"));
        REQUIRE(value.use_count() == 3);
        REQUIRE(queue.clean(TimePoint{1s}, 1) == 1);
        REQUIRE(value.use_count() == 2);
    }
    REQUIRE(value.use_count() == 1);
}

TEST_CASE("RoundQueue is as it was when memory runs out in put") {
    Random random;
    CAPTURE(random.seed());
    CheckedQueue checked({.dequeue_period = 1s, .ttl = 10s}, TimePoint{}, CheckedQueue::Observed::no);
    std::size_t failures = 0;
    for (std::uint64_t number = 0; number < 10'000; ++number) {
        if (random.one_in(3)) checked.take();
        if (random.one_in(3)) checked.remove(id_of(random.below(number + 1)));
        checked.now += 1us;
        for (std::size_t allowed = 0; !checked.put(id_of(number), allowed); ++allowed, ++failures) {
            expect(checked.queue.size() == checked.size(), "the size is as it was");
            if (failures % 100 == 0) checked.check();
        }
        checked.compare();
    }
    REQUIRE(failures > 100);
    checked.check();
}

TEST_CASE("To put again what is there needs no memory") {
    RoundQueue<int> queue;
    const std::string id(1000, 'x');
    queue.put(TimePoint{}, id, 1);
    const auto put_again = [&] {
        const AllocationsFailAfter none{0};
        queue.put(TimePoint{}, id, 2);
        (void)queue.take(TimePoint{});
    };
    REQUIRE_NOTHROW(put_again());
}

TEST_CASE("RoundQueue is as it was when memory runs out in restore") {
    CheckedQueue checked({.dequeue_period = 1s, .ttl = 10s}, TimePoint{5s}, CheckedQueue::Observed::no);
    std::size_t failures = 0;
    for (std::uint64_t number = 0; number < 3000; ++number) {
        const auto restore = [&](std::size_t allowed) {
            return checked.restore(id_of(number), TimePoint{Duration{number * 389 % 1000}}, std::nullopt, allowed);
        };
        for (std::size_t allowed = 0; !restore(allowed); ++allowed, ++failures) checked.check();
        checked.compare();
    }
    REQUIRE(failures > 10);
    checked.check();
    while (checked.size() > 0) {
        checked.now += 50us;
        checked.take();
        checked.clean(1);
    }
}

TEST_CASE("A RoundQueue that was restored from what its observer saw hands out the same, in whatever order it came") {
    Random random;
    CAPTURE(random.seed());
    for (const Duration period : {Duration{0}, Duration{50}, Duration{2000}}) {
        const RoundQueueOptions options{.dequeue_period = period, .ttl = 20ms};
        CheckedQueue checked(options, TimePoint{});
        for (int step = 0; step < 20'000; ++step) random_step(checked, random, 1000);
        checked.check();

        std::vector<Noted> items;
        for (const auto& [slot, item] : checked.mirror) items.push_back(item);
        std::shuffle(items.begin(), items.end(), std::mt19937_64(random.seed()));
        Mirror::Items seen;
        Queue restored(options, Mirror(&seen));
        TimePoint now = checked.latest();
        for (const Noted& item : items) {
            const auto [id, value, created, last_taken, times_taken, sequence] = item;
            const auto slot = restored.restore(
                now, {id, std::make_unique<std::uint64_t>(value), created, last_taken, times_taken, sequence});
            REQUIRE(slot);
            REQUIRE(seen.emplace(*slot, item).second);
        }
        REQUIRE(restored.check());
        REQUIRE(restored.size() == checked.size());

        for (int step = 0; step < 5000; ++step) {
            if (random.one_in(4)) now += up_to(random, 20us);
            if (random.one_in(4)) {
                const std::string id = id_of(random.below(1000));
                restored.put(now, id, std::make_unique<std::uint64_t>(step));
                checked.queue.put(now, id, std::make_unique<std::uint64_t>(step));
            }
            if (random.one_in(50)) {
                expect(restored.clean(now, unlimited) == checked.queue.clean(now, unlimited), "the same is cleaned");
            }
            const auto expected = checked.queue.take(now), actual = restored.take(now);
            expect(expected.has_value() == actual.has_value(), "both have something, or both nothing");
            expect(!expected || note(*expected) == note(*actual), "and that is the same");
        }
        REQUIRE(restored.check());
        REQUIRE(restored.size() == checked.queue.size());
        REQUIRE(seen.size() == checked.mirror.size());
    }
}

TEST_CASE("A restored item is as it was: new or taken, with its times, and its age") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    const TimePoint now{20s};
    REQUIRE(queue.restore(now, {.id = "b", .value = 2, .created = TimePoint{12s}, .last_taken = TimePoint{15s}}));
    REQUIRE(queue.restore(now, {.id = "new", .value = 4, .created = TimePoint{19s}}));
    REQUIRE(queue.restore(now, {.id = "old", .value = 1, .created = TimePoint{8s}, .last_taken = TimePoint{19s}}));
    REQUIRE(queue.restore(
        now, {.id = "a", .value = 3, .created = TimePoint{14s}, .last_taken = TimePoint{14s}, .times_taken = 5}));
    REQUIRE(queue.check());
    REQUIRE(queue.find("b")->times_taken == 1);
    REQUIRE(queue.find("b")->last_taken == TimePoint{15s});
    REQUIRE(queue.find("a")->times_taken == 5);
    REQUIRE(*queue.next_expiry() <= TimePoint{18s});
    REQUIRE(*queue.next_available() <= now);
    REQUIRE(queue.clean(now, 0) == 0);
    REQUIRE(queue.next_expiry() == TimePoint{18s});
    REQUIRE(queue.check());
    for (const char* id : {"new", "a", "b", "none"}) REQUIRE(taken(queue, now) == id);
    REQUIRE_FALSE(queue.find("old"));
    REQUIRE(queue.next_expiry() == TimePoint{22s});
}

TEST_CASE("What is restored in its order needs no sorting to know what comes next") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    const TimePoint now{5s};
    for (const std::uint64_t second : {1, 2, 2, 3}) {
        const TimePoint at{std::chrono::seconds{second}};
        REQUIRE(queue.restore(now, {std::to_string(queue.size()), 1, at, at, 1, queue.size()}));
        REQUIRE(queue.next_available() == TimePoint{2s});
        REQUIRE(queue.next_expiry() == TimePoint{11s});
    }
    REQUIRE(queue.restore(now, {"earlier", 1, TimePoint{3s}, TimePoint{2s}, 1, 0}));
    REQUIRE(*queue.next_available() <= TimePoint{2s});
    for (const char* id : {"0", "earlier", "1", "2", "3", "none"}) REQUIRE(taken(queue, now) == id);
}

TEST_CASE("An item whose id is there already is not restored, and changes nothing") {
    RoundQueue<int> queue;
    queue.put(TimePoint{1s}, "a", 1);
    RoundItem<int> item{.id = "a", .value = 2};
    REQUIRE_FALSE(queue.restore(TimePoint{1s}, std::move(item)));
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.find("a")->value == 1);
    REQUIRE(queue.check());
}

TEST_CASE("A restored time that is still to come counts as now") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    REQUIRE(queue.restore(TimePoint{5s}, {.id = "a", .created = TimePoint::max(), .last_taken = TimePoint{7s}}));
    REQUIRE(queue.restore(TimePoint{5s}, {.id = "b", .created = TimePoint{6s}}));
    REQUIRE(queue.find("a")->created == TimePoint{5s});
    REQUIRE(queue.find("a")->last_taken == TimePoint{5s});
    REQUIRE(queue.find("b")->created == TimePoint{5s});
    REQUIRE(queue.check());
    for (const char* id : {"b", "none"}) REQUIRE(taken(queue, TimePoint{5s}) == id);
    REQUIRE(taken(queue, TimePoint{6s}) == "a");
    REQUIRE(queue.clean(TimePoint{15s}, unlimited) == 2);
}

TEST_CASE("A RoundQueue that is moved takes everything along and leaves an empty one that can be used") {
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<RoundQueue<int>>);
    Random random;
    CAPTURE(random.seed());
    CheckedQueue checked({.dequeue_period = 20us, .ttl = 30ms}, TimePoint{});
    for (int round = 0; round < 20; ++round) {
        for (int step = 0; step < 3000; ++step) random_step(checked, random, 1000);
        const auto next_expiry = checked.queue.next_expiry();
        Queue moved(std::move(checked.queue));
        REQUIRE(moved.check());
        REQUIRE(moved.next_expiry() == next_expiry);
        REQUIRE(checked.queue.empty());
        REQUIRE(checked.queue.bytes() == 0);
        REQUIRE(checked.queue.check());
        REQUIRE_FALSE(checked.queue.take(checked.latest()));

        Mirror::Items others;
        Queue other({.ttl = 1h, .hash_seed = 7}, Mirror(&others));
        other.put(TimePoint{10s}, "a", std::make_unique<std::uint64_t>(1));
        other = std::move(moved);
        REQUIRE(other.check());
        REQUIRE(moved.check());
        REQUIRE(moved.find("a"));
        REQUIRE(moved.next_expiry() == TimePoint{10s + 1h});
        moved.put(TimePoint{}, "b", std::make_unique<std::uint64_t>(1));
        REQUIRE(moved.size() == 2);
        checked.queue = std::move(other);
        checked.compare();
        checked.check();
    }
}

TEST_CASE("What was restored before a RoundQueue is moved comes in its order after that") {
    RoundQueue<int> queue;
    for (const std::uint64_t sequence : {3, 1, 2}) {
        REQUIRE(queue.restore(TimePoint{}, {.id = std::to_string(sequence), .sequence = sequence}));
    }
    RoundQueue<int> moved(std::move(queue));
    for (const char* id : {"1", "2", "3", "1"}) REQUIRE(taken(moved, TimePoint{}) == id);
}

TEST_CASE("A RoundQueue that was moved from can be filled again") {
    RoundQueue<int> queue({.dequeue_period = 1s, .ttl = 10s});
    for (int number = 0; number < 1000; ++number) queue.put(TimePoint{5s}, std::to_string(number), int{number});
    RoundQueue<int> moved(std::move(queue));
    for (int number = 0; number < 20; ++number) queue.put(TimePoint{1s}, std::to_string(number), int{number});
    REQUIRE(queue.size() == 20);
    REQUIRE(queue.check());
    REQUIRE(queue.take(TimePoint{1s})->id == "0");
    REQUIRE(queue.next_expiry() == TimePoint{11s});
    REQUIRE(moved.size() == 1000);
    REQUIRE(moved.check());
}

TEST_CASE("A SlotList sorts as std::stable_sort does, and is as good a list after that") {
    struct Record {
        vigil::SlotLinks links;
        std::uint64_t key = 0;
    };
    Random random;
    CAPTURE(random.seed());
    for (std::uint64_t size = 0; size < 300; ++size) {
        std::vector<Record> records(size);
        std::vector<std::uint32_t> expected(size);
        vigil::SlotList<&Record::links> list;
        for (std::uint32_t slot = 0; slot < size; ++slot) {
            records[slot].key = random.below(random.one_in(3) ? 5 : 1000);
            expected[slot] = slot;
        }
        std::shuffle(expected.begin(), expected.end(), std::mt19937_64(random.seed()));
        for (const auto slot : expected) list.push_back(records, slot);
        const auto before = [&](auto left, auto right) { return records[left].key < records[right].key; };
        std::stable_sort(expected.begin(), expected.end(), before);
        list.sort(records, before);

        std::size_t at = 0;
        REQUIRE(list.check(records, [&](auto slot, auto) { return slot == expected[at++]; }) == size);
        while (!list.empty()) list.remove(records, random.one_in(2) ? list.first() : list.last());
        REQUIRE(list.check(records, [](auto, auto) { return true; }) == 0);
    }
}
