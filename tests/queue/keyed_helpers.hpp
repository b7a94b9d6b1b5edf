#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "queue/keyed_copy.hpp"

namespace vigil::testing {

using namespace std::chrono_literals;

using Texts = std::vector<std::string>;
inline constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
inline constexpr TimePoint start{};

/// All that is due, in order, as "key=fragment,fragment".
template <class Queue>
Texts evict_all(Queue& queue, TimePoint now) {
    Texts evicted;
    queue.evict_due(now, unlimited, [&](const KeyedItem& item) { evicted.push_back(text(item)); });
    return evicted;
}

/// What evict() gives, or "nothing".
inline std::string evict_one(PriorityHashQueue& queue, TimePoint now) {
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

inline std::string text_of(const PriorityHashQueue& queue, std::string_view key) { return text(*queue.find(key)); }

inline std::string key_of(int number) { return "key " + std::to_string(number); }

/// `count` keys, due each millisecond from `first` on, with their numbers as data.
inline void fill(PriorityHashQueue& queue, int count, TimePoint first) {
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
inline void require_same(std::vector<ItemCopy> items, std::vector<ItemCopy> others) {
    for (auto* list : {&items, &others}) {
        for (ItemCopy& item : *list) item.sequence = 0;
    }
    REQUIRE(items == others);
}

}  // namespace vigil::testing
