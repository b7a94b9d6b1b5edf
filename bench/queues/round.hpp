#pragma once

#include <cstdint>
#include <string>
#include <vigil/queue/round_queue.hpp>

#include "../harness.hpp"

/// RoundQueue: what a take() costs when all items have been handed out before, in a warm queue.
namespace bench::round {

inline double nanoseconds_per_take(std::size_t items, std::size_t takes) {
    vigil::RoundQueue<std::string> queue({.dequeue_period = vigil::Duration{1}});
    vigil::TimePoint now{};
    const std::string value(40, 'v');
    for (std::size_t index = 0; index < items; ++index) {
        std::string id = std::to_string(index);
        id.insert(0, 10 - std::min<std::size_t>(id.size(), 10), '0');
        queue.put(now, id, std::string(value));
    }
    std::uint64_t bytes = 0;
    const auto take = [&](std::size_t count) {
        for (std::size_t taken = 0; taken < count; ++taken) {
            now += vigil::Duration{1};
            const auto item = queue.take(now);
            verify(item.has_value(), "there is always one to take");
            bytes += item->value.size() + item->times_taken;
        }
    };
    take(items);  // each once
    const std::uint64_t before = bytes;
    const double start = cpu_now();
    take(takes);
    const double end = cpu_now();
    std::uint64_t expected = 0;
    for (std::size_t taken = 0; taken < takes; ++taken) expected += value.size() + 2 + taken / items;
    verify(bytes - before == expected, "each item in its turn");
    return (end - start) / static_cast<double>(takes);
}

}  // namespace bench::round
