#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_helpers.hpp"

using namespace std::chrono_literals;
using vigil::DataMode;
using vigil::Duration;
using vigil::Expiry;
using vigil::PriorityHashQueue;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::evict_all;
using vigil::testing::evict_one;
using vigil::testing::start;
using vigil::testing::text_of;
using vigil::testing::Texts;
using vigil::testing::texts_of;

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
