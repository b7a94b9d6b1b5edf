#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_helpers.hpp"

using namespace std::chrono_literals;
using vigil::BasicPriorityHashQueue;
using vigil::Change;
using vigil::DataMode;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::copy_of;
using vigil::testing::evict_all;
using vigil::testing::fill;
using vigil::testing::fill_with_all_kinds;
using vigil::testing::ItemCopy;
using vigil::testing::items_of;
using vigil::testing::Mirror;
using vigil::testing::require_same;
using vigil::testing::start;
using vigil::testing::text;
using vigil::testing::Texts;
using vigil::testing::texts_of;

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
