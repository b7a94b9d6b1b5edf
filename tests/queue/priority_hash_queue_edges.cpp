#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_helpers.hpp"

using namespace std::chrono_literals;
using vigil::DataMode;
using vigil::KeyedData;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::Push;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::evict_all;
using vigil::testing::evict_one;
using vigil::testing::fill;
using vigil::testing::fill_with_all_kinds;
using vigil::testing::ItemCopy;
using vigil::testing::items_of;
using vigil::testing::key_of;
using vigil::testing::start;
using vigil::testing::text;
using vigil::testing::text_of;
using vigil::testing::Texts;
using vigil::testing::unlimited;

TEST_CASE("What find() shows can be passed back in") {
    const int length = GENERATE(0, 5, 40, 61, 62, 300, 5000);
    CAPTURE(length);
    const std::string key(static_cast<std::size_t>(length) / 3, 'k');
    std::string data;
    for (int count = 0; count < length; ++count) data += static_cast<char>('a' + count % 26);
    PriorityHashQueue queue;
    queue.push(start, key, data, TimePoint{1s}, {.type = "type"});
    const auto item = [&] { return *queue.find(key); };
    const char* const other_types[] = {"another type", "", "a", "type"};

    SECTION("as the data that replaces it") {
        queue.push(start, item().key, item().data.front(), TimePoint{1s}, {.type = item().type});
        REQUIRE(text(item()) == key + "=" + data);
        REQUIRE(item().type == "type");
        for (const char* type : other_types) {
            queue.push(start, item().key, item().data.front(), TimePoint{1s}, {.type = type});
            REQUIRE(text(item()) == key + "=" + data);
            REQUIRE(item().type == type);
        }
    }
    SECTION("as the data that is appended") {
        std::string expected = key + "=" + data;
        for (int count = 0; count < 50; ++count) {
            const char* type = count % 5 == 0 ? nullptr : other_types[count % 4];
            const PushOptions options{.type = type == nullptr ? item().type : type, .mode = DataMode::append};
            const std::string expected_type(options.type);
            queue.push(start, item().key, item().data.front(), TimePoint{1s}, options);
            expected += "," + data;
            REQUIRE(text(item()) == expected);
            REQUIRE(item().type == expected_type);
        }
    }
    SECTION("as the type") {
        for (int count = 0; count < 3; ++count) {
            const std::string type(item().type), front(item().data.front());
            queue.push(start, key, item().type, TimePoint{1s}, {.type = item().data.front()});
            REQUIRE(item().type == front);
            REQUIRE(item().data.front() == type);
        }
        queue.push(start, key, "x", TimePoint{1s}, {.type = item().data.front(), .mode = DataMode::append});
        REQUIRE(item().type == "type");
        queue.push(start, key, std::string(9000, 'x'), TimePoint{1s}, {.type = item().type});
        REQUIRE(item().type == "type");
        queue.push(start, key, data, TimePoint{1s});
        queue.push(start, key, "x", TimePoint{1s}, {.type = item().data.front()});
        REQUIRE(item().type == data);
        REQUIRE(text(item()) == key + "=x");
    }
    SECTION("as the last of several fragments, which replaces them all") {
        for (const char* more : {"b", "cc"}) queue.push(start, key, more, TimePoint{1s}, {.mode = DataMode::append});
        queue.push(start, key, *++(++item().data.begin()), TimePoint{1s});
        REQUIRE(text(item()) == key + "=cc");
    }
    SECTION("as the data of a new item that takes its place") {
        queue.push(start, item().key, item().data.front(), TimePoint{1s}, {.type = item().type, .max_wait = 0s});
        REQUIRE(queue.size() == 2);
        REQUIRE(text(item()) == key + "=" + data);
        REQUIRE(item().type == "type");
    }
    SECTION("as the key to cancel") { REQUIRE(queue.cancel(item().key)); }
    REQUIRE(queue.check());
}

TEST_CASE("bytes() counts large data as long as it is there") {
    PriorityHashQueue queue;
    queue.push(start, "small", "data", TimePoint{1s});
    const auto before = queue.bytes();
    const std::string megabyte(1'000'000, 'x');
    queue.push(start, "a", megabyte, TimePoint{1s});
    REQUIRE(queue.bytes() >= before + 1'000'000);
    queue.push(start, "b", "", TimePoint{1s}, {.type = megabyte.substr(0, 60'000)});
    for (int count = 0; count < 3; ++count) queue.push(start, "b", megabyte, TimePoint{1s}, {.mode = DataMode::append});
    REQUIRE(queue.bytes() >= before + 4'000'000);
    REQUIRE(queue.bytes() <= before + 7'000'000);
    REQUIRE(queue.cancel("a"));
    REQUIRE(queue.bytes() <= before + 6'000'000);
    evict_all(queue, TimePoint{1s});
    REQUIRE(queue.bytes() == before);
    REQUIRE(queue.check());
}

TEST_CASE("An item that grows needs a larger block now and then, not at each push") {
    PriorityHashQueue queue;
    int times = 0;
    for (int count = 0; count < 10'000; ++count) {
        const auto before = queue.bytes();
        queue.push(start, "k", "part", TimePoint{1s}, {.mode = DataMode::append});
        if (queue.bytes() != before) ++times;
    }
    REQUIRE(times < 50);
    REQUIRE(queue.bytes() < 2 * 10'000 * 8 + 100'000);
}

TEST_CASE("The entries of a PriorityHashQueue never outnumber its items, and its memory follows their number") {
    PriorityHashQueue queue;
    std::size_t bytes = 0;
    for (int round = 0; round < 100; ++round) {
        for (int number = 0; number < 2000; ++number) {
            queue.push(start, key_of(number), "data", TimePoint{10s} + (number * 7919 + round * 104729) % 5000 * 1ms);
        }
        REQUIRE(queue.size() == 2000);
        REQUIRE(queue.entries() == queue.size());
        if (round == 10) bytes = queue.bytes();
    }
    REQUIRE(queue.bytes() <= bytes + bytes / 10);
    REQUIRE(queue.check());
}

TEST_CASE("Entries of items that were cancelled when their time had come are at most as many, and a thousand") {
    PriorityHashQueue queue;
    for (int number = 0; number < 10'000; ++number) queue.push(start, key_of(number), "", TimePoint{5s});
    queue.evict_due(TimePoint{5s}, unlimited, [](const KeyedItem&) { return false; });
    for (int number = 0; number < 10'000; ++number) {
        queue.cancel(key_of(number * 7919 % 10'000));
        if (queue.entries() > 2 * queue.size() + 1000) FAIL("too many entries after " << number);
    }
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
}

TEST_CASE("Items that have left make room for those to come") {
    PriorityHashQueue queue;
    std::size_t bytes = 0;
    for (int round = 0; round < 50; ++round) {
        const TimePoint now{round * 10s};
        for (int number = 0; number < 2000; ++number) {
            queue.push(now, key_of(round * 1000 + number), "data", now + 1s + number * 1ms);
        }
        if (round % 2 == 0) {
            for (int number = 0; number < 2000; ++number) REQUIRE(queue.cancel(key_of(round * 1000 + number)));
        } else {
            REQUIRE(evict_all(queue, now + 5s).size() == 2000);
        }
        REQUIRE(queue.check());
        if (round == 5) bytes = queue.bytes();
    }
    REQUIRE(queue.bytes() <= bytes + bytes / 10);
}

TEST_CASE("Keys with the same hash are kept apart") {
    std::unordered_map<std::uint32_t, std::string> seen;
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int number = 0; pairs.size() < 3; ++number) {
        std::string key = "twin" + std::string(static_cast<std::size_t>(number % 9), '-') + std::to_string(number);
        const auto [other, fresh] = seen.emplace(static_cast<std::uint32_t>(vigil::hash_bytes(key, 7)), key);
        if (!fresh) pairs.emplace_back(other->second, std::move(key));
    }
    PriorityHashQueue queue({}, 7);
    for (const auto& [one, other] : pairs) {
        CAPTURE(one, other);
        queue.push(start, one, "1", TimePoint{1s});
        REQUIRE_FALSE(queue.find(other));
        const Push batch[] = {{other, "1", TimePoint{1s}}, {other, "2", TimePoint{1s}}};
        queue.push(start, batch);
        REQUIRE(text_of(queue, one) == one + "=1");
        REQUIRE(text_of(queue, other) == other + "=2");
        REQUIRE(queue.check());
        REQUIRE(queue.cancel(one));
        REQUIRE_FALSE(queue.cancel(one));
        REQUIRE(evict_all(queue, TimePoint{1s}) == Texts{other + "=2"});
    }
}

TEST_CASE("KeyedData has its key and no other, whatever its length") {
    for (std::size_t length = 0; length < 100; ++length) {
        CAPTURE(length);
        std::string key(length, 'k');
        KeyedData data;
        data.assign(key, "k", "k");
        REQUIRE(data.has_key(key));
        REQUIRE_FALSE(data.has_key(key + "k"));
        if (length > 0) REQUIRE_FALSE(data.has_key(std::string_view(key).substr(1)));
        for (char& changed : key) {
            changed = 'K';
            if (data.has_key(key)) FAIL("has a key that it was not given");
            changed = 'k';
        }
        data.clear();
    }
}

TEST_CASE("A due in the past is evicted next, in order") {
    PriorityHashQueue queue;
    queue.push(TimePoint{100s}, "now", "", TimePoint{100s});
    queue.push(TimePoint{100s}, "past", "", TimePoint{50s});
    queue.push(TimePoint{100s}, "long past", "", TimePoint{-50s});
    queue.push(TimePoint{100s}, "moved", "", TimePoint{200s});
    queue.reschedule(TimePoint{100s}, "moved", TimePoint{60s});
    REQUIRE(queue.next_due() == TimePoint{-50s});
    REQUIRE(evict_all(queue, TimePoint{100s}) == Texts{"long past=", "past=", "moved=", "now="});
}

TEST_CASE("Dues and times reach from one end of time to the other") {
    PriorityHashQueue queue;
    const int others = GENERATE(0, 3000);
    fill(queue, others, TimePoint{1s});
    for (const TimePoint now : {TimePoint::min(), start, TimePoint::max()}) {
        const std::string key = std::to_string(now.time_since_epoch().count());
        queue.push(now, key + " first", "", TimePoint::min());
        queue.push(now, key + " waits", "", TimePoint::max(), {.max_wait = 1s});
        REQUIRE(queue.find(key + " waits")->due == (now == TimePoint::max() ? now : now + 1s));
        for (int count = 0; count < 2; ++count) {
            queue.push(now, key + " last", "", TimePoint::max(), {.max_count = 9});
            REQUIRE(queue.find(key + " last")->due == TimePoint::max());
        }
        REQUIRE(queue.check());
    }
    REQUIRE(evict_all(queue, TimePoint::min()).size() == 3);
    REQUIRE(evict_all(queue, TimePoint::max() - 1us).size() == static_cast<std::size_t>(others) + 2);
    REQUIRE(evict_all(queue, TimePoint::max()).size() == 4);
    REQUIRE(queue.empty());
}

TEST_CASE("A key may be empty") {
    PriorityHashQueue queue;
    for (const std::string_view key : {std::string_view(), std::string_view("")}) {
        REQUIRE(queue.push(start, key, "a", TimePoint{1s}).inserted);
        REQUIRE_FALSE(queue.push(start, std::string_view(), "b", TimePoint{1s}).inserted);
        REQUIRE_FALSE(queue.push(start, "", "c", TimePoint{1s}, {.mode = DataMode::append}).inserted);
        REQUIRE(text_of(queue, key) == "=b,c");
        REQUIRE(queue.reschedule(start, key, TimePoint{2s}));
        REQUIRE(queue.cancel(key));
    }
}

TEST_CASE("A key may be 64 KiB long, and contain any bytes") {
    PriorityHashQueue queue;
    std::string key;
    for (int byte = 0; byte < 64 * 1024; ++byte) key += static_cast<char>(byte % 256);
    std::string other = key;
    other.back() = 'x';
    queue.push(start, key, "a", TimePoint{1s}, {.type = std::string_view("\0|:\n", 4)});
    queue.push(start, other, "b", TimePoint{1s});
    queue.push(start, key, "c", TimePoint{2s}, {.mode = DataMode::append});
    REQUIRE(queue.find(key)->data.size() == 2);
    REQUIRE(queue.check());
    REQUIRE(evict_one(queue, TimePoint{1s}) == other + "=b");
    REQUIRE(evict_one(queue, TimePoint{2s}) == key + "=a,c");
}

TEST_CASE("Data may be empty") {
    PriorityHashQueue queue;
    queue.push(start, "k", {}, TimePoint{1s});
    REQUIRE(queue.find("k")->data.size() == 1);
    REQUIRE(queue.find("k")->data.front().empty());
    queue.push(start, "k", "", TimePoint{1s}, {.mode = DataMode::append});
    const auto evicted = queue.evict(TimePoint{1s});
    REQUIRE(evicted->data == Texts{"", ""});
}

TEST_CASE("Data may be 16 MiB long") {
    PriorityHashQueue queue;
    const std::string data(16 * 1024 * 1024, 'x');
    const auto before = queue.bytes();
    for (int count = 0; count < 2; ++count) queue.push(start, "k", data, TimePoint{1s});
    REQUIRE(queue.bytes() >= before + data.size());
    queue.push(start, "k", data, TimePoint{1s}, {.mode = DataMode::append});
    const auto evicted = queue.evict(TimePoint{1s});
    REQUIRE((evicted->data.front() == data && evicted->data.back() == data));
    REQUIRE(queue.bytes() < 1'000'000);
}

TEST_CASE("A million pushes of one key need no more memory than a hundred") {
    PriorityHashQueue queue;
    std::size_t bytes = 0;
    for (int count = 0; count < 1'000'000; ++count) {
        const TimePoint now{count * 1us};
        queue.push(now, "k", "data", now + (count % 3 == 0 ? 1s : 10s));
        if (count == 100) bytes = queue.bytes();
    }
    REQUIRE(queue.bytes() == bytes);
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.find("k")->pushes == 1'000'000);
    REQUIRE(evict_all(queue, TimePoint{20s}).size() == 1);
}

TEST_CASE("A type of more than 65535 bytes is a length_error and changes nothing") {
    const std::string type(65536, 't');
    PriorityHashQueue queue;
    fill_with_all_kinds(queue);
    queue.push(start, "roomy", std::string(200'000, 'x'), TimePoint{20s});
    const auto before = items_of(queue);
    const auto bytes = queue.bytes();
    REQUIRE_THROWS_AS(queue.push(start, "new", "", start, {.type = type}), std::length_error);
    for (const char* key : {"plain", "list", "large", "roomy"}) {
        const PushOptions modes[] = {{.type = type},
                                     {.type = type, .mode = DataMode::append},
                                     {.type = type, .max_wait = 0s},
                                     {.type = type, .max_count = 1}};
        for (const PushOptions& options : modes) {
            REQUIRE_THROWS_AS(queue.push(TimePoint{5s}, key, "data", TimePoint{6s}, options), std::length_error);
        }
    }
    ItemCopy item = before.front();
    item.key = "new";
    item.type = type;
    REQUIRE_THROWS_AS(queue.restore(start, item.view()), std::length_error);
    REQUIRE(queue.check());
    REQUIRE(items_of(queue) == before);
    REQUIRE(queue.bytes() == bytes);
    REQUIRE_NOTHROW(queue.push(start, "new", "", start, {.type = std::string_view(type).substr(1)}));
}

TEST_CASE("Data of 4 GiB is a length_error and changes nothing") {
    const std::string_view data("never read", std::size_t{1} << 32);
    PriorityHashQueue queue;
    REQUIRE_THROWS_AS(queue.push(start, "k", data, start), std::length_error);
    REQUIRE(queue.empty());
    queue.push(start, "k", "a", TimePoint{1s});
    REQUIRE_THROWS_AS(queue.push(start, "k", data, start, {.mode = DataMode::append}), std::length_error);
    REQUIRE(text_of(queue, "k") == "k=a");
    REQUIRE(queue.check());
}
