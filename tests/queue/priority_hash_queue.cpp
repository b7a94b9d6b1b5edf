#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_helpers.hpp"

using namespace std::chrono_literals;
using vigil::DataMode;
using vigil::Duration;
using vigil::Expiry;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::Push;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::copy_of;
using vigil::testing::evict_all;
using vigil::testing::evict_one;
using vigil::testing::fill;
using vigil::testing::fill_with_all_kinds;
using vigil::testing::ItemCopy;
using vigil::testing::items_of;
using vigil::testing::key_of;
using vigil::testing::start;
using vigil::testing::Texts;
using vigil::testing::texts_of;
using vigil::testing::unlimited;

TEST_CASE("PriorityHashQueue is a TimedQueue that can be moved but not copied") {
    STATIC_REQUIRE(vigil::TimedQueue<PriorityHashQueue>);
    STATIC_REQUIRE(std::is_nothrow_move_constructible_v<PriorityHashQueue>);
    STATIC_REQUIRE(std::is_nothrow_move_assignable_v<PriorityHashQueue>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<PriorityHashQueue>);
}

TEST_CASE("An empty PriorityHashQueue has nothing to give") {
    PriorityHashQueue queue;
    REQUIRE(queue.empty());
    REQUIRE(queue.size() == 0);
    REQUIRE(queue.entries() == 0);
    REQUIRE(queue.bytes() == 0);
    REQUIRE_FALSE(queue.evict(TimePoint::max()));
    REQUIRE_FALSE(queue.next_due());
    REQUIRE_FALSE(queue.earliest());
    REQUIRE_FALSE(queue.find("key"));
    REQUIRE_FALSE(queue.cancel("key"));
    REQUIRE_FALSE(queue.reschedule(start, "key", start));
    REQUIRE(queue.forecast(start, 1s, 3).counts == std::vector<std::size_t>{0, 0, 0});
    REQUIRE_FALSE(queue.evict_due(TimePoint::max(), 10, [](const KeyedItem&) {}).more);
    REQUIRE(queue.check());
}

TEST_CASE("PriorityHashQueue evicts the lowest due first, and a key that was pushed again once, at its new due only") {
    PriorityHashQueue queue;
    for (int number = 15; number >= 10; --number) {
        queue.push(start, "k-" + std::to_string(number), "data-" + std::to_string(number),
                   start + std::chrono::seconds{number});
    }
    queue.push(start, "k-11", "new data", TimePoint{14500ms});
    REQUIRE(queue.size() == 6);

    REQUIRE(evict_one(queue, TimePoint{9s}) == "nothing");
    REQUIRE(evict_one(queue, TimePoint{11s}) == "k-10=data-10");
    REQUIRE(evict_one(queue, TimePoint{11s}) == "nothing");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "k-12=data-12");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "k-13=data-13");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "k-14=data-14");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "k-11=new data");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "k-15=data-15");
    REQUIRE(evict_one(queue, TimePoint{20s}) == "nothing");
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
}

TEST_CASE("A key that is pushed again with an earlier due is evicted at that, once") {
    PriorityHashQueue queue;
    queue.push(start, "k", "a", TimePoint{20s});
    queue.push(start, "other", "o", TimePoint{10s});
    queue.push(start, "k", "b", TimePoint{5s});
    REQUIRE(evict_one(queue, TimePoint{5s}) == "k=b");
    REQUIRE(evict_one(queue, TimePoint{5s}) == "nothing");
    REQUIRE(evict_all(queue, TimePoint{20s}) == Texts{"other=o"});
}

TEST_CASE("An item is evicted at its due, not a microsecond before") {
    PriorityHashQueue queue;
    queue.push(TimePoint{1s}, "k", "a", TimePoint{10s}, {.type = "t"});
    queue.push(TimePoint{2s}, "k", "b", TimePoint{11s}, {.type = "t", .mode = DataMode::append});
    REQUIRE_FALSE(queue.evict(TimePoint{11s} - 1us));
    const auto evicted = queue.evict(TimePoint{11s});
    REQUIRE(evicted);
    REQUIRE(evicted->key == "k");
    REQUIRE(evicted->type == "t");
    REQUIRE(evicted->data == Texts{"a", "b"});
    REQUIRE(evicted->due == TimePoint{11s});
    REQUIRE(evicted->first_push == TimePoint{1s});
    REQUIRE(evicted->pushes == 2);
}

TEST_CASE("However often a key was updated, what is due comes at the first call") {
    PriorityHashQueue queue;
    for (int count = 0; count < 3000; ++count) queue.push(start, "busy", "x", TimePoint{1s} + count * 1ms);
    queue.push(start, "other", "o", TimePoint{1s});
    REQUIRE(evict_one(queue, TimePoint{1s}) == "other=o");
    REQUIRE(queue.size() == 1);
    REQUIRE(evict_one(queue, TimePoint{3998ms}) == "nothing");
    REQUIRE(evict_one(queue, TimePoint{3999ms}) == "busy=x");
}

TEST_CASE("However many keys were updated, what is due comes at the first call") {
    PriorityHashQueue queue;
    fill(queue, 3000, TimePoint{1s});
    queue.push(start, "other", "o", TimePoint{5s});
    for (int number = 0; number < 3000; ++number) queue.push(start, key_of(number), "new", TimePoint{6s});
    REQUIRE(evict_one(queue, TimePoint{4999ms}) == "nothing");
    REQUIRE(evict_one(queue, TimePoint{5s}) == "other=o");
    REQUIRE(evict_all(queue, TimePoint{6s}).size() == 3000);
}

TEST_CASE("Items with the same due leave in the order of their last pushes") {
    PriorityHashQueue queue;
    const int count = GENERATE(10, 5000);
    Texts expected;
    for (int number = 0; number < count; ++number) {
        queue.push(start, key_of(number), "a", TimePoint{number % 2 == 0 ? 5s : 3s});
    }
    for (int number = 1; number < count; number += 2) {
        queue.push(start, key_of(number), "a", TimePoint{5s});
        expected.push_back(key_of(number) + "=a");
    }
    for (int number = 0; number < count; number += 2) {
        queue.push(start, key_of(number), "a", TimePoint{5s});
        expected.push_back(key_of(number) + "=a");
    }
    REQUIRE(texts_of(queue) == expected);
    REQUIRE(evict_all(queue, TimePoint{5s}) == expected);
}

TEST_CASE("An item that is cancelled is gone, and its key can be pushed anew") {
    PriorityHashQueue queue;
    fill(queue, 3000, TimePoint{1s});
    for (int number = 0; number < 3000; number += 2) REQUIRE(queue.cancel(key_of(number)));
    REQUIRE_FALSE(queue.cancel(key_of(0)));
    REQUIRE_FALSE(queue.find(key_of(0)));
    REQUIRE(queue.size() == 1500);
    REQUIRE(queue.check());
    REQUIRE(queue.push(start, key_of(0), "anew", TimePoint{1s}).inserted);
    REQUIRE(queue.find(key_of(0))->pushes == 1);
    REQUIRE(evict_all(queue, TimePoint{10s}).size() == 1501);
}

TEST_CASE("find() shows an item as it is, and leaves it there") {
    PriorityHashQueue queue;
    queue.push(TimePoint{1s}, "k", "a", TimePoint{10s}, {.type = "t"});
    queue.push(TimePoint{2s}, "k", "b", TimePoint{11s}, {.type = "u", .mode = DataMode::append});
    REQUIRE_FALSE(queue.find("K"));
    REQUIRE_FALSE(queue.find("k "));
    for (int count = 0; count < 2; ++count) {
        const auto item = queue.find("k");
        REQUIRE(item->key == "k");
        REQUIRE(item->type == "u");
        REQUIRE(Texts(item->data.begin(), item->data.end()) == Texts{"a", "b"});
        REQUIRE(item->data.front() == "a");
        REQUIRE(item->due == TimePoint{11s});
        REQUIRE(item->first_push == TimePoint{1s});
        REQUIRE(item->pushes == 2);
        REQUIRE_FALSE(item->sealed);
    }
}

TEST_CASE("reschedule() moves an item earlier or later, behind those with the same due, and changes nothing else") {
    PriorityHashQueue queue;
    const int count = GENERATE(3, 3000);
    fill(queue, count, TimePoint{10s});
    auto before = copy_of(*queue.find(key_of(1)));
    for (const TimePoint due : {TimePoint{100s}, TimePoint{5s}, TimePoint{10s}, TimePoint{10s}, TimePoint{10s + 2ms}}) {
        REQUIRE(queue.reschedule(TimePoint{1s}, key_of(1), due));
        auto after = copy_of(*queue.find(key_of(1)));
        REQUIRE(after.sequence > before.sequence);
        before.sequence = after.sequence;
        before.due = due;
        REQUIRE(after == before);
        REQUIRE(queue.check());
    }
    REQUIRE(evict_all(queue, TimePoint{10s + 2ms}) == Texts{"key 0=0", "key 2=2", "key 1=1"});
}

TEST_CASE("next_due() is never late, and who evicts at that time gets on") {
    PriorityHashQueue queue;
    fill(queue, 3000, TimePoint{1s});
    for (int number = 0; number < 3000; ++number) {
        if (number % 3 == 0) queue.cancel(key_of(number));
        if (number % 3 == 1) queue.push(start, key_of(number), "later", TimePoint{30s} + number % 7 * 1h);
    }
    int calls = 0;
    TimePoint before = TimePoint::min();
    for (; !queue.empty(); ++calls) {
        REQUIRE(queue.next_due() <= queue.earliest()->due);
        const TimePoint now = *queue.next_due();
        REQUIRE(now > before);
        before = now;
        evict_all(queue, now);
    }
    REQUIRE(calls < 5000);
}

TEST_CASE("earliest() is exact, also if what would have come first was moved or cancelled") {
    PriorityHashQueue queue;
    const int count = GENERATE(10, 3000);
    fill(queue, count, TimePoint{1s});
    REQUIRE(queue.earliest()->key == key_of(0));
    for (int number = 0; number + 1 < count; ++number) {
        if (number % 2 == 0) queue.push(start, key_of(number), "later", TimePoint{1h});
        if (number % 2 == 1) queue.cancel(key_of(number));
        if (number % 100 == 0) REQUIRE(queue.earliest()->key == key_of(number + 1));
    }
    REQUIRE(queue.earliest()->key == key_of(count - 1));
    REQUIRE(queue.earliest()->due == TimePoint{1s} + (count - 1) * 1ms);
    queue.push(start, "first", "", TimePoint::min());
    REQUIRE(queue.earliest()->key == "first");
}

TEST_CASE("each_by_due() shows all in order until it is told to stop, and disturbs nothing") {
    PriorityHashQueue queue;
    const int count = GENERATE(10, 3000);
    fill(queue, count, TimePoint{1s});
    for (int number = 0; number < count; number += 3) queue.push(start, key_of(number), "l", TimePoint{1h});
    for (int number = 1; number < count; number += 3) queue.reschedule(start, key_of(number), TimePoint{1ms});
    fill_with_all_kinds(queue);

    const auto items = items_of(queue);
    REQUIRE(items.size() == queue.size());
    REQUIRE(std::is_sorted(items.begin(), items.end(), [](const ItemCopy& one, const ItemCopy& other) {
        return one.due != other.due ? one.due < other.due : one.sequence < other.sequence;
    }));
    const auto next_due = queue.next_due();
    std::size_t seen = 0;
    queue.each_by_due([&](const KeyedItem& item) { return copy_of(item) == items[seen++] && seen < 5; });
    REQUIRE(seen == 5);
    seen = 0;
    queue.each_by_due([&](const KeyedItem&) { ++seen; });
    REQUIRE(seen == items.size());
    REQUIRE(queue.next_due() == next_due);

    const auto texts = texts_of(queue);
    REQUIRE(evict_all(queue, TimePoint{2h}) == texts);
}

TEST_CASE("forecast() counts what falls due when") {
    PriorityHashQueue queue;
    const TimePoint now{100s};
    const Duration dues[] = {-5s, 0s, 999999us, 1s, 2s, 2500ms, 3s - 1us, 3s, 1h};
    for (const Duration due : dues) queue.push(start, std::to_string(due.count()), "", now + due);
    queue.push(start, "moved", "", now + 1h);
    queue.push(start, "moved", "", now + 1s);
    queue.push(now, "sealed", "", now + 1h, {.max_count = 1});
    queue.push(start, "cancelled", "", now + 1s);
    queue.cancel("cancelled");

    const auto forecast = queue.forecast(now, 1s, 3);
    REQUIRE(forecast.counts == std::vector<std::size_t>{4, 2, 3});
    REQUIRE(forecast.later == 2);

    SECTION("in one go or in pieces") {
        for (const std::size_t piece : {1, 2, 5, 100}) {
            auto pieces = queue.forecast(now, 1s, 3, piece);
            std::size_t calls = 1;
            do ++calls;
            while (queue.forecast_more(pieces, piece));
            REQUIRE(pieces.counts == forecast.counts);
            REQUIRE(pieces.later == forecast.later);
            REQUIRE(calls >= queue.size() / piece);
            REQUIRE_FALSE(queue.forecast_more(pieces, unlimited));
            REQUIRE(pieces.counts == forecast.counts);
        }
    }
    SECTION("without buckets, all is later") { REQUIRE(queue.forecast(now, 1s, 0).later == queue.size()); }
    SECTION("with no width, a bucket is as narrow as can be") {
        for (const Duration width : {Duration{0}, Duration{-1s}, Duration{1us}}) {
            REQUIRE(queue.forecast(now, width, 2).counts == std::vector<std::size_t>{3, 0});
        }
    }
}

TEST_CASE("forecast() reaches from one end of time to the other") {
    PriorityHashQueue queue;
    queue.push(start, "first", "", TimePoint::min());
    queue.push(start, "last", "", TimePoint::max());
    for (const TimePoint now : {TimePoint::min(), TimePoint{-10s}, TimePoint{}, TimePoint::max() - 1us}) {
        CAPTURE(now.time_since_epoch().count());
        const auto forecast = queue.forecast(now, 1us, 1);
        REQUIRE(forecast.counts == std::vector<std::size_t>{1});
        REQUIRE(forecast.later == 1);
    }
    const auto wide = queue.forecast(TimePoint{-10s}, Duration::max(), 2);
    REQUIRE(wide.counts == std::vector<std::size_t>{1, 1});
}

TEST_CASE("A batch stops before a message that is too long and says how many it pushed") {
    PriorityHashQueue queue;
    const std::string too_long(70'000, 't');
    std::vector<Push> batch(3);
    batch[0].key = "first";
    batch[1].key = "second";
    batch[1].options.type = too_long;
    batch[2].key = "third";
    REQUIRE(queue.push(start, batch) == 1);
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.find("first"));
    REQUIRE_THROWS_AS(queue.push(start, std::span(batch).subspan(1)), std::length_error);
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.check());
}

TEST_CASE("A batch does the same as its messages one by one") {
    PriorityHashQueue queue, single;
    std::vector<std::string> keys, values;
    for (int number = 0; number < 200; ++number) {
        keys.push_back(key_of(number * number % 37));
        values.push_back(std::string(static_cast<std::size_t>(number % 90), 'x') + std::to_string(number));
    }
    std::vector<Push> batch;
    for (std::size_t number = 0; number < keys.size(); ++number) {
        PushOptions options;
        if (number % 3 == 0) options.mode = DataMode::append;
        if (number % 5 == 0) options.expiry = Expiry::keep;
        if (number % 7 == 0) options.max_count = 3;
        if (number % 11 == 0) options.type = keys[number / 2];
        batch.push_back({keys[number], values[number], TimePoint{10s} + number * 7919 % 100 * 1ms, options});
    }
    const std::size_t count = GENERATE(1, 31, 32, 33, 64, 200);
    for (std::size_t round = 0; round < 3; ++round) {
        const std::span<const Push> part(batch.data(), count);
        REQUIRE(queue.push(TimePoint{1s}, part) == count);
        for (const Push& push : part) single.push(TimePoint{1s}, push.key, push.data, push.due, push.options);
        REQUIRE(items_of(queue) == items_of(single));
    }
    REQUIRE(queue.check());
    REQUIRE(queue.push(start, std::span<const Push>()) == 0);
}
