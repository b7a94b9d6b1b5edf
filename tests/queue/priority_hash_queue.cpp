#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_copy.hpp"

using namespace std::chrono_literals;
using vigil::BasicPriorityHashQueue;
using vigil::Change;
using vigil::DataMode;
using vigil::Duration;
using vigil::Expiry;
using vigil::KeyedData;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::Push;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::copy_of;
using vigil::testing::ItemCopy;
using vigil::testing::items_of;
using vigil::testing::Mirror;
using vigil::testing::text;

namespace {

using Texts = std::vector<std::string>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr TimePoint start{};

/// All that is due, in order, as "key=fragment,fragment".
template <class Queue>
Texts evict_all(Queue& queue, TimePoint now) {
    Texts evicted;
    queue.evict_due(now, unlimited, [&](const KeyedItem& item) { evicted.push_back(text(item)); });
    return evicted;
}

/// What evict() gives, or "nothing".
std::string evict_one(PriorityHashQueue& queue, TimePoint now) {
    const auto evicted = queue.evict(now);
    if (!evicted) return "nothing";
    std::string text = evicted->key + "=";
    for (const std::string& fragment : evicted->data) text += fragment + ",";
    text.pop_back();
    return text;
}

/// What is there, in the order in which it falls due.
template <class Queue>
Texts texts_of(const Queue& queue) {
    Texts texts;
    for (const ItemCopy& item : items_of(queue)) texts.push_back(text(item.view()));
    return texts;
}

std::string text_of(const PriorityHashQueue& queue, std::string_view key) { return text(*queue.find(key)); }

std::string key_of(int number) { return "key " + std::to_string(number); }

/// `count` keys, due each millisecond from `first` on, with their numbers as data.
void fill(PriorityHashQueue& queue, int count, TimePoint first) {
    for (int number = 0; number < count; ++number) {
        queue.push(start, key_of(number), std::to_string(number), first + number * 1ms);
    }
}

/// Items of each kind: with and without type, with one and more fragments, small and large, sealed and re-armed.
template <class Queue>
void fill_with_all_kinds(Queue& queue) {
    const std::string large(300, 'x');
    queue.push(TimePoint{1s}, "plain", "data", TimePoint{20s});
    queue.push(TimePoint{1s}, "typed", "data", TimePoint{20s}, {.type = "type"});
    queue.push(TimePoint{1s}, "large", large, TimePoint{15s}, {.type = large});
    for (int count = 0; count < 10; ++count) {
        queue.push(TimePoint{2s}, "list", "part", TimePoint{16s}, {.mode = DataMode::append});
        queue.push(TimePoint{2s}, "counted", std::to_string(count), TimePoint{17s}, {.max_count = 4});
    }
    queue.push(TimePoint{3s}, "", "", TimePoint{18s});
    queue.push(TimePoint{3s}, "plain", "other", TimePoint{25s});
    queue.push(TimePoint{3s}, "gone", "data", TimePoint{4s});
    queue.push(TimePoint{3s}, "earlier", "data", TimePoint{30s});
    queue.reschedule(TimePoint{3s}, "earlier", TimePoint{10s});
    queue.cancel("gone");
}

/// The same at last, whatever their sequences are.
void require_same(std::vector<ItemCopy> items, std::vector<ItemCopy> others) {
    for (auto* list : {&items, &others}) {
        for (ItemCopy& item : *list) item.sequence = 0;
    }
    REQUIRE(items == others);
}

}  // namespace

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

TEST_CASE("Replaced data takes the place of all that was there") {
    PriorityHashQueue queue;
    for (const char* data : {"a", "b"}) queue.push(start, "k", data, TimePoint{1s}, {.mode = DataMode::append});
    queue.push(start, "k", "c", TimePoint{1s});
    REQUIRE(text_of(queue, "k") == "k=c");
    queue.push(start, "k", std::string(200, 'd'), TimePoint{1s}, {.mode = DataMode::replace});
    queue.push(start, "k", "", TimePoint{1s});
    REQUIRE(evict_all(queue, TimePoint{1s}) == Texts{"k="});
}

TEST_CASE("Appended data follows as one more fragment") {
    PriorityHashQueue queue;
    const std::string large(100, 'x');
    for (const std::string& data : {std::string("a"), std::string(), large, std::string("b")}) {
        queue.push(start, "k", data, TimePoint{1s}, {.mode = DataMode::append});
    }
    REQUIRE(queue.find("k")->data.size() == 4);
    REQUIRE(evict_all(queue, TimePoint{1s}) == Texts{"k=a,," + large + ",b"});
}

TEST_CASE("Data that is not the first is dropped if that is to be kept, and its type too") {
    PriorityHashQueue queue;
    queue.push(start, "k", "a", TimePoint{1s}, {.type = "first", .mode = DataMode::keep_first});
    queue.push(start, "k", "b", TimePoint{2s}, {.type = "second", .mode = DataMode::keep_first});
    REQUIRE(queue.find("k")->type == "first");
    REQUIRE(queue.find("k")->pushes == 2);
    REQUIRE(evict_all(queue, TimePoint{1s}).empty());
    REQUIRE(evict_all(queue, TimePoint{2s}) == Texts{"k=a"});
}

TEST_CASE("The last type wins, whether the data is replaced or appended, and whatever its length") {
    const DataMode mode = GENERATE(DataMode::replace, DataMode::append);
    PriorityHashQueue queue;
    std::string expected = "k";
    const std::string types[] = {"b", "", "longer", std::string(500, 't'), std::string(65535, 'u'), "c", "d"};
    for (const std::string& type : types) {
        queue.push(start, "k", "some data", TimePoint{1s}, {.type = type, .mode = mode});
        REQUIRE(queue.find("k")->type == type);
        expected += expected == "k" ? "=some data" : ",some data";
        REQUIRE(text_of(queue, "k") == (mode == DataMode::append ? expected : "k=some data"));
    }
    REQUIRE(queue.check());
}

TEST_CASE("A push of a key that is there moves its due as its expiry says") {
    struct Case {
        Expiry expiry;
        Duration again;
        Duration due;
    };
    const Case cases[] = {{Expiry::restart, 20s, 20s},  {Expiry::restart, 5s, 5s},    {Expiry::keep, 20s, 10s},
                          {Expiry::keep, 5s, 10s},      {Expiry::earliest, 20s, 10s}, {Expiry::earliest, 5s, 5s},
                          {Expiry::earliest, 10s, 10s}, {Expiry::restart, 10s, 10s}};
    for (const auto& [expiry, again, due] : cases) {
        CAPTURE(static_cast<int>(expiry), again.count());
        PriorityHashQueue queue;
        queue.push(start, "k", "a", TimePoint{10s});
        queue.push(start, "k", "b", TimePoint{again}, {.expiry = expiry});
        REQUIRE(queue.find("k")->due == TimePoint{due});
        REQUIRE(evict_one(queue, TimePoint{due} - 1us) == "nothing");
        REQUIRE(evict_one(queue, TimePoint{due}) == "k=b");
        REQUIRE(queue.empty());
    }
}

TEST_CASE("A push that leaves the due as it is leaves the item its place among equal ones, unless it restarts it") {
    PriorityHashQueue queue;
    for (const char* key : {"a", "b", "c"}) queue.push(start, key, "1", TimePoint{10s});
    queue.push(start, "a", "2", TimePoint{5s}, {.expiry = Expiry::keep});
    queue.push(start, "b", "2", TimePoint{10s}, {.expiry = Expiry::earliest});
    queue.push(start, "a", "3", TimePoint{15s}, {.expiry = Expiry::earliest});
    REQUIRE(texts_of(queue) == Texts{"a=3", "b=2", "c=1"});
    queue.push(start, "a", "4", TimePoint{10s});
    REQUIRE(texts_of(queue) == Texts{"b=2", "c=1", "a=4"});
}

TEST_CASE("What a message does not say is taken from the defaults of its type, then from those of the queue") {
    struct Case {
        PushOptions options;
        Texts result;  // of pushing "aaa" and then "bbb" at 5 s, due at 20 s and 15 s, and evicting at 9 s and 16 s
    };
    const Case cases[] = {
        {{.mode = DataMode::append}, {"|", "k=aaa,bbb"}},
        {{.mode = DataMode::keep_first}, {"|", "k=aaa"}},
        {{.expiry = Expiry::keep}, {"|"}},
        {{.expiry = Expiry::earliest}, {"|", "k=bbb"}},
        {{.max_wait = 4s}, {"k=aaa", "k=bbb", "|"}},
        {{.max_count = 2}, {"k=bbb", "|"}},
        {{.max_bytes = 3}, {"k=aaa", "k=bbb", "|"}},
    };
    for (const Case& tested : cases) {
        // The opposite of each.
        const PushOptions none{.mode = DataMode::replace,
                               .expiry = Expiry::restart,
                               .max_wait = Duration::max(),
                               .max_count = 1000,
                               .max_bytes = 1000};
        enum Level { in_message, in_type, in_queue, in_type_over_queue, in_message_over_both, in_both_but_not_message };
        for (const Level level :
             {in_message, in_type, in_queue, in_type_over_queue, in_message_over_both, in_both_but_not_message}) {
            CAPTURE(&tested - cases, static_cast<int>(level));
            PriorityHashQueue queue;
            PushOptions of_message, of_type, of_queue;
            if (level == in_message || level == in_message_over_both) of_message = tested.options;
            if (level == in_type || level == in_type_over_queue) of_type = tested.options;
            if (level == in_queue) of_queue = tested.options;
            if (level == in_type_over_queue || level == in_message_over_both) of_queue = none;
            if (level == in_message_over_both) of_type = none;
            if (level == in_both_but_not_message) {
                of_message = none;
                of_type = of_queue = tested.options;
            }
            of_message.type = of_type.type = "t";
            queue.set_defaults(of_queue);
            queue.set_defaults(of_type);
            queue.set_defaults({.type = "other", .mode = DataMode::append, .max_count = 1});

            queue.push(start, "k", "aaa", TimePoint{20s}, of_message);
            queue.push(TimePoint{5s}, "k", "bbb", TimePoint{15s}, of_message);
            Texts result = evict_all(queue, TimePoint{9s});
            result.push_back("|");
            for (const auto& evicted : evict_all(queue, TimePoint{16s})) result.push_back(evicted);
            REQUIRE(result == (level == in_both_but_not_message ? Texts{"|", "k=bbb"} : tested.result));
        }
    }
}

TEST_CASE("Defaults that are set again replace all of the old ones") {
    PriorityHashQueue queue;
    for (const char* type : {"", "t"}) {
        queue.set_defaults({.type = type, .mode = DataMode::append, .max_count = 1});
        REQUIRE(queue.push(start, "k", "a", TimePoint{1s}, {.type = type}).sealed);
        queue.set_defaults({.type = type, .expiry = Expiry::keep});
        REQUIRE_FALSE(queue.push(start, "k", "b", TimePoint{1s}, {.type = type}).sealed);
        queue.push(start, "k", "c", TimePoint{2s}, {.type = type});
        REQUIRE(evict_all(queue, TimePoint{1s}) == Texts{"k=a", "k=c"});
        queue.set_defaults({.type = type});
    }
}

TEST_CASE("A push says whether it made a new item, and whether it sealed one") {
    PriorityHashQueue queue;
    const auto pushed = [&](std::string_view data, const PushOptions& options) {
        const auto result = queue.push(start, "k", data, TimePoint{1s}, options);
        return std::pair(result.inserted, result.sealed);
    };
    REQUIRE(pushed("a", {}) == std::pair(true, false));
    REQUIRE(pushed("a", {}) == std::pair(false, false));
    REQUIRE(pushed("a", {.max_count = 3}) == std::pair(false, true));
    REQUIRE(pushed("a", {.max_count = 1}) == std::pair(true, true));
    REQUIRE(pushed("aa", {.max_bytes = 3}) == std::pair(true, false));
    REQUIRE(pushed("aa", {.mode = DataMode::append, .max_bytes = 3}) == std::pair(true, true));
    REQUIRE(queue.size() == 4);
}

TEST_CASE("An item says how many pushes it stands for, and when the first one was") {
    PriorityHashQueue queue;
    const DataMode mode = GENERATE(DataMode::replace, DataMode::append, DataMode::keep_first);
    for (int count = 1; count <= 100; ++count) {
        queue.push(TimePoint{count * 1s}, "k", "a", TimePoint{500s}, {.mode = mode});
        REQUIRE(queue.find("k")->pushes == static_cast<std::uint32_t>(count));
    }
    queue.reschedule(TimePoint{100s}, "k", TimePoint{200s});
    const auto evicted = queue.evict(TimePoint{200s});
    REQUIRE(evicted->pushes == 100);
    REQUIRE(evicted->first_push == TimePoint{1s});
}

TEST_CASE("No due is later than max_wait after the first push of its item") {
    PriorityHashQueue queue;
    const auto due_after = [&](TimePoint now, TimePoint due, const PushOptions& options) {
        queue.push(now, "k", "a", due, options);
        return queue.find("k")->due;
    };
    REQUIRE(due_after(TimePoint{100s}, TimePoint{200s}, {.max_wait = 10s}) == TimePoint{110s});
    REQUIRE(due_after(TimePoint{105s}, TimePoint{200s}, {.max_wait = 10s}) == TimePoint{110s});
    REQUIRE(due_after(TimePoint{105s}, TimePoint{107s}, {.max_wait = 10s}) == TimePoint{107s});
    REQUIRE(due_after(TimePoint{106s}, TimePoint{200s}, {}) == TimePoint{200s});
    REQUIRE(due_after(TimePoint{106s}, TimePoint{300s}, {.expiry = Expiry::keep, .max_wait = 20s}) == TimePoint{120s});
    REQUIRE(queue.find("k")->first_push == TimePoint{100s});
    REQUIRE(queue.find("k")->pushes == 5);
    REQUIRE(evict_all(queue, TimePoint{120s} - 1us).empty());
    REQUIRE(evict_all(queue, TimePoint{120s}).size() == 1);
    REQUIRE(due_after(TimePoint::max() - 1s, TimePoint::max(), {.max_wait = 10s}) == TimePoint::max());
}

TEST_CASE("A push when max_wait is over seals the item and opens a new one") {
    PriorityHashQueue queue;
    const PushOptions waits{.mode = DataMode::append, .max_wait = 10s};
    queue.push(TimePoint{100s}, "k", "a", TimePoint{105s}, waits);
    queue.push(TimePoint{110s} - 1us, "k", "b", TimePoint{200s}, waits);
    REQUIRE(queue.size() == 1);
    const TimePoint after = GENERATE(TimePoint{110s}, TimePoint{115s});
    const auto pushed = queue.push(after, "k", "c", TimePoint{200s}, waits);
    REQUIRE(pushed.inserted);
    REQUIRE(pushed.sealed);
    REQUIRE(queue.size() == 2);
    REQUIRE(queue.find("k")->first_push == after);
    REQUIRE(queue.find("k")->due == after + 10s);
    REQUIRE(queue.find("k")->pushes == 1);
    REQUIRE(evict_all(queue, after) == Texts{"k=a,b"});
    REQUIRE(evict_all(queue, after + 10s) == Texts{"k=c"});
}

TEST_CASE("An item that stands for max_count pushes is sealed") {
    PriorityHashQueue queue;
    const DataMode mode = GENERATE(DataMode::replace, DataMode::append, DataMode::keep_first);
    for (const char* data : {"1", "2", "3", "4", "5", "6", "7"}) {
        queue.push(start, "k", data, TimePoint{10s}, {.mode = mode, .max_count = 3});
    }
    const Texts evicted = mode == DataMode::replace  ? Texts{"k=3", "k=6"}
                          : mode == DataMode::append ? Texts{"k=1,2,3", "k=4,5,6"}
                                                     : Texts{"k=1", "k=4"};
    REQUIRE(evict_all(queue, start) == evicted);
    REQUIRE(text_of(queue, "k") == "k=7");
}

TEST_CASE("An item that has max_bytes of data is sealed") {
    PriorityHashQueue queue;
    const auto push = [&](std::string_view data, DataMode mode) {
        queue.push(start, "k", data, TimePoint{10s}, {.mode = mode, .max_bytes = 6});
    };
    SECTION("when an append reaches it") {
        push("aaa", DataMode::append);
        push("bb", DataMode::append);
        REQUIRE(evict_all(queue, start).empty());
        push("c", DataMode::append);
        REQUIRE(evict_all(queue, start) == Texts{"k=aaa,bb,c"});
        REQUIRE(queue.empty());
    }
    SECTION("first when an append would pass it; the new fragment opens a new item") {
        push("aaa", DataMode::append);
        push("bbbb", DataMode::append);
        REQUIRE(evict_all(queue, start) == Texts{"k=aaa"});
        REQUIRE(text_of(queue, "k") == "k=bbbb");
    }
    SECTION("and the new one too if the fragment is that long") {
        push("aaa", DataMode::append);
        push("bbbbbbb", DataMode::append);
        REQUIRE(evict_all(queue, start) == Texts{"k=aaa", "k=bbbbbbb"});
    }
    SECTION("at the first push") {
        push("aaaaaa", DataMode::keep_first);
        REQUIRE(evict_all(queue, start) == Texts{"k=aaaaaa"});
    }
    SECTION("when it is replaced by so much, not by what was there before") {
        push("aaaa", DataMode::replace);
        push("bbbbb", DataMode::replace);
        REQUIRE(evict_all(queue, start).empty());
        push("ccccccc", DataMode::replace);
        REQUIRE(evict_all(queue, start) == Texts{"k=ccccccc"});
    }
    SECTION("not by what is dropped") {
        push("aaaa", DataMode::keep_first);
        push("bbbbbbbbb", DataMode::keep_first);
        REQUIRE(evict_all(queue, start).empty());
    }
    SECTION("where the bytes of fragments count, not their number") {
        for (int count = 0; count < 100; ++count) push("", DataMode::append);
        for (int count = 0; count < 5; ++count) push("a", DataMode::append);
        REQUIRE(evict_all(queue, start).empty());
        push("a", DataMode::append);
        REQUIRE(evict_all(queue, start).size() == 1);
    }
    REQUIRE(queue.check());
}

TEST_CASE("A sealed item is counted and due at once, but its key does not reach it") {
    PriorityHashQueue queue;
    queue.push(TimePoint{1s}, "k", "a", TimePoint{10s}, {.max_count = 2});
    queue.push(TimePoint{2s}, "k", "b", TimePoint{10s}, {.max_count = 2});
    REQUIRE(queue.size() == 1);
    REQUIRE(queue.next_due() <= TimePoint{2s});
    REQUIRE(queue.earliest()->sealed);
    REQUIRE(queue.earliest()->due == TimePoint{2s});
    REQUIRE_FALSE(queue.find("k"));
    REQUIRE_FALSE(queue.cancel("k"));
    REQUIRE_FALSE(queue.reschedule(TimePoint{2s}, "k", TimePoint{20s}));

    queue.push(TimePoint{2s}, "k", "c", TimePoint{10s});
    REQUIRE(queue.size() == 2);
    REQUIRE_FALSE(queue.find("k")->sealed);
    REQUIRE(queue.find("k")->pushes == 1);
    REQUIRE(queue.reschedule(TimePoint{2s}, "k", TimePoint{11s}));
    REQUIRE(queue.check());
    REQUIRE(evict_all(queue, TimePoint{1s}).empty());
    REQUIRE(evict_all(queue, TimePoint{2s}) == Texts{"k=b"});
    REQUIRE(queue.cancel("k"));
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
}

TEST_CASE("Sealed items leave among the others in order of due: those that were due keep their place") {
    PriorityHashQueue queue;
    queue.push(TimePoint{1s}, "overdue", "a", TimePoint{5s});
    queue.push(TimePoint{1s}, "between", "a", TimePoint{6s});
    queue.push(TimePoint{1s}, "late", "a", TimePoint{100s});
    queue.push(TimePoint{1s}, "same time", "a", TimePoint{8s});
    for (const char* key : {"late", "overdue", "last"}) {
        queue.push(
            TimePoint{8s}, key, "b", TimePoint{100s},
            {.mode = DataMode::append, .expiry = Expiry::keep, .max_count = key == std::string("last") ? 1u : 2u});
    }
    REQUIRE(texts_of(queue) == Texts{"overdue=a,b", "between=a", "same time=a", "late=a,b", "last=b"});
    REQUIRE(evict_all(queue, TimePoint{8s}) == Texts{"overdue=a,b", "between=a", "same time=a", "late=a,b", "last=b"});
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

TEST_CASE("restore() brings everything back as it was, in its order") {
    PriorityHashQueue queue, restored;
    fill_with_all_kinds(queue);
    auto items = items_of(queue);
    std::sort(items.begin(), items.end(),
              [](const ItemCopy& one, const ItemCopy& other) { return one.sequence < other.sequence; });
    std::vector<PriorityHashQueue::SlotNumber> slots;
    for (const ItemCopy& item : items) {
        const auto slot = restored.restore(TimePoint{100s}, item.view());
        REQUIRE(slot);
        REQUIRE(std::count(slots.begin(), slots.end(), *slot) == 0);
        slots.push_back(*slot);
    }
    REQUIRE(restored.check());
    require_same(items_of(restored), items_of(queue));
    for (const ItemCopy& item : items) {
        const auto found = restored.find(item.key);
        REQUIRE(found.has_value() == queue.find(item.key).has_value());
        if (!item.sealed) REQUIRE(text(*found) == text(item.view()));
    }
    REQUIRE(evict_all(restored, TimePoint{1h}) == evict_all(queue, TimePoint{1h}));
}

TEST_CASE("restore() refuses a key that is there, but takes any number of sealed ones") {
    PriorityHashQueue queue;
    queue.push(start, "k", "a", TimePoint{1s});
    ItemCopy item = copy_of(*queue.find("k"));
    const auto before = items_of(queue);
    REQUIRE_FALSE(queue.restore(start, item.view()));
    REQUIRE(items_of(queue) == before);
    item.sealed = true;
    REQUIRE(queue.restore(start, item.view()));
    REQUIRE(queue.restore(start, item.view()));
    REQUIRE(queue.size() == 3);
    REQUIRE(queue.cancel("k"));
    REQUIRE_FALSE(queue.find("k"));
    item.sealed = false;
    REQUIRE(queue.restore(start, item.view()));
    REQUIRE(queue.find("k"));
    REQUIRE(queue.check());
    REQUIRE(evict_all(queue, TimePoint{1s}) == Texts{"k=a", "k=a", "k=a"});
}

TEST_CASE("A restored item goes on as if it had never left") {
    const PushOptions options = GENERATE(PushOptions{.mode = DataMode::append, .max_count = 3},
                                         PushOptions{.mode = DataMode::append, .max_bytes = 3});
    PriorityHashQueue queue, restored;
    queue.push(TimePoint{1s}, "k", "a", TimePoint{10s}, options);
    queue.push(TimePoint{2s}, "k", "b", TimePoint{10s}, options);
    REQUIRE(restored.restore(TimePoint{3s}, *queue.find("k")));
    REQUIRE(restored.push(TimePoint{4s}, "k", "c", TimePoint{10s}, options).sealed);
    REQUIRE(restored.earliest()->first_push == TimePoint{1s});
    REQUIRE(evict_all(restored, TimePoint{4s}) == Texts{"k=a,b,c"});
}

TEST_CASE("An observer knows all that the queue knows") {
    BasicPriorityHashQueue<Mirror> queue;
    fill_with_all_kinds(queue);
    queue.push(TimePoint{3s}, "kept", "a", TimePoint{21s}, {.type = "t", .mode = DataMode::keep_first});
    queue.push(TimePoint{3s}, "kept", "b", TimePoint{22s}, {.type = "u", .mode = DataMode::keep_first});
    queue.push(TimePoint{4s}, "list", "b", TimePoint{22s}, {.type = "u", .mode = DataMode::append});
    queue.evict_due(TimePoint{10s}, 2, [](const KeyedItem&) {});
    queue.evict_due(TimePoint{16s}, 2, [](const KeyedItem&) { return false; });
    REQUIRE(queue.observer().right());
    REQUIRE(queue.observer().items() == items_of(queue));

    PriorityHashQueue restored;
    for (const ItemCopy& item : queue.observer().items_by_sequence()) {
        REQUIRE(restored.restore(TimePoint{20s}, item.view()));
    }
    require_same(items_of(restored), items_of(queue));
    REQUIRE(evict_all(restored, TimePoint{1h}) == evict_all(queue, TimePoint{1h}));
    REQUIRE(queue.observer().items().empty());
    REQUIRE(queue.observer().right());
}

TEST_CASE("An observer is told what became of an item, and nothing of what is restored") {
    struct Log {
        std::vector<Change>* changes;
        std::vector<std::uint32_t>* removals;
        void changed(std::uint32_t, const KeyedItem&, Change change) const { changes->push_back(change); }
        void removed(std::uint32_t slot) const { removals->push_back(slot); }
    };
    std::vector<Change> changes;
    std::vector<std::uint32_t> removals;
    BasicPriorityHashQueue<Log> queue(Log{&changes, &removals});
    const auto after = [&](const auto& operation) {
        changes.clear();
        operation();
        return changes;
    };
    using Changes = std::vector<Change>;
    const auto push = [&](const PushOptions& options) {
        return [&queue, options] { queue.push(start, "k", "data", TimePoint{1s}, options); };
    };
    REQUIRE(after(push({})) == Changes{Change::added});
    REQUIRE(after(push({})) == Changes{Change::replaced});
    REQUIRE(after(push({.mode = DataMode::append})) == Changes{Change::appended});
    REQUIRE(after(push({.mode = DataMode::keep_first})) == Changes{Change::moved});
    REQUIRE(after([&] { queue.reschedule(start, "k", TimePoint{2s}); }) == Changes{Change::moved});
    REQUIRE(after(push({.mode = DataMode::append, .max_bytes = 5})) == Changes{Change::sealed, Change::added});
    REQUIRE(after(push({.max_count = 2})) == Changes{Change::replaced, Change::sealed});
    REQUIRE(after(push({.max_count = 1})) == Changes{Change::added, Change::sealed});
    const std::string raw{"\x01\0\0\0x", 5};
    const ItemCopy item{"restored", "", raw, TimePoint{9s}, start, 0, 1, false};
    std::optional<std::uint32_t> slot;
    REQUIRE(after([&] { slot = queue.restore(start, item.view()); }).empty());
    REQUIRE(removals.empty());
    REQUIRE(after([&] { queue.cancel("restored"); }).empty());
    REQUIRE(removals == std::vector<std::uint32_t>{*slot});
    REQUIRE(after([&] { evict_all(queue, TimePoint{2s}); }).empty());
    REQUIRE(removals.size() == 4);
    REQUIRE(queue.empty());
}

TEST_CASE("A PriorityHashQueue that is moved takes everything along and leaves an empty one that can be used") {
    PriorityHashQueue queue;
    queue.set_defaults({.mode = DataMode::append});
    queue.set_defaults({.type = "t", .max_count = 1});
    fill(queue, 3000, TimePoint{1s});
    fill_with_all_kinds(queue);
    const auto items = items_of(queue);
    const auto bytes = queue.bytes();

    PriorityHashQueue moved(std::move(queue));
    REQUIRE(queue.empty());
    REQUIRE(queue.check());
    REQUIRE_FALSE(queue.find("plain"));
    REQUIRE(queue.push(start, "plain", "new", TimePoint{1s}).inserted);
    REQUIRE(moved.check());
    REQUIRE(moved.bytes() == bytes);
    REQUIRE(items_of(moved) == items);

    PriorityHashQueue assigned;
    assigned.push(start, "old", "old", TimePoint{1s});
    assigned = std::move(moved);
    REQUIRE(assigned.check());
    REQUIRE(assigned.bytes() == bytes);
    REQUIRE(items_of(assigned) == items);
    REQUIRE_FALSE(assigned.find("old"));
    assigned.push(TimePoint{1s}, "behind", "", items.back().due);
    REQUIRE(texts_of(assigned).back() == "behind=");
    REQUIRE(assigned.cancel("behind"));
    assigned.push(TimePoint{1s}, "plain", "appended", TimePoint{1s});
    REQUIRE(assigned.find("plain")->data.size() == 3);
    REQUIRE(assigned.push(TimePoint{1s}, "plain", "sealed", TimePoint{1s}, {.type = "t"}).sealed);
    REQUIRE(evict_all(assigned, TimePoint{1h}).size() == items.size());
}

TEST_CASE("The observer of a PriorityHashQueue moves with it") {
    BasicPriorityHashQueue<Mirror> queue;
    fill_with_all_kinds(queue);
    BasicPriorityHashQueue<Mirror> moved(std::move(queue));
    REQUIRE(moved.observer().items() == items_of(moved));
    BasicPriorityHashQueue<Mirror> assigned;
    assigned = std::move(moved);
    assigned.push(start, "plain", "again", TimePoint{1s});
    REQUIRE(assigned.observer().items() == items_of(assigned));
    REQUIRE(assigned.observer().right());
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

TEST_CASE("A max_count or max_bytes of 0 seals at once, as 1 does") {
    PriorityHashQueue queue;
    const PushOptions options[] = {{.max_count = 0}, {.max_count = 1}, {.max_bytes = 0}, {.max_bytes = 1}};
    for (const PushOptions& option : options) {
        for (int count = 0; count < 2; ++count) {
            const auto pushed = queue.push(start, "k", "a", TimePoint{1s}, option);
            REQUIRE(pushed.inserted);
            REQUIRE(pushed.sealed);
            REQUIRE_FALSE(queue.find("k"));
        }
    }
    REQUIRE(queue.size() == 8);
    REQUIRE(queue.push(start, "k", "", TimePoint{1s}, {.max_bytes = 0}).sealed);
    REQUIRE(queue.check());
    REQUIRE(evict_all(queue, start).size() == 9);
}

TEST_CASE("A negative max_wait is none at all: the item is due at once") {
    PriorityHashQueue queue;
    for (const Duration wait : {Duration{0}, Duration{-1s}, Duration::min()}) {
        queue.push(TimePoint{1s}, "k", "a", TimePoint{10s}, {.max_wait = wait});
        REQUIRE(queue.find("k")->due == TimePoint{1s});
    }
    REQUIRE(queue.size() == 3);
    REQUIRE(evict_all(queue, TimePoint{1s}).size() == 3);
}

TEST_CASE("A push costs the same however many fragments its item has") {
    PriorityHashQueue queue;
    const PushOptions append{.mode = DataMode::append};
    const PushOptions capped{.mode = DataMode::append, .max_wait = 1h, .max_bytes = 1'000'000'000};
    for (int count = 0; count < 100'000; ++count) queue.push(start, "k", "a", TimePoint{1s}, append);
    const auto before = std::clock();
    for (int count = 0; count < 2000; ++count) queue.push(start, "k", "a", TimePoint{1s}, capped);
    REQUIRE(std::clock() - before < CLOCKS_PER_SEC / 10);
}
