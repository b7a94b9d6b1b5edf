#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>
#include <vigil/queue/heap.hpp>
#include <vigil/queue/timer_set.hpp>

#include "../harness.hpp"

/// Why a heap alone is not enough: what Schedule (two rings and two heaps) and a 4-ary heap cost to put and take what
/// is due at random moments, near, far or sparse. The heap here cannot even remove what is not due.
namespace bench::schedule {

using vigil::Duration;
using vigil::TimePoint;

struct Workload {
    std::vector<TimePoint> dues;
    std::uint64_t checksum = 0;

    Workload(std::size_t count, Duration first, Duration last, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::uniform_int_distribution<std::int64_t> due(first.count(), last.count());
        for (std::size_t index = 0; index < count; ++index) {
            dues.emplace_back(Duration{due(random)});
            checksum += index * static_cast<std::uint64_t>(dues.back().time_since_epoch().count());
        }
    }
};

/// Nanoseconds of CPU for each entry. `take(now, check)` calls `check(due, index)` for what is due.
template <class Put, class Take, class NextDue>
double measure(const Workload& workload, Put put, Take take, NextDue next_due) {
    std::uint64_t count = 0, checksum = 0;
    bool in_order = true;
    TimePoint last = TimePoint::min();
    const double start = cpu_now();
    for (std::size_t index = 0; index < workload.dues.size(); ++index) put(workload.dues[index], index);
    TimePoint now{};
    for (auto due = next_due(); due; due = next_due()) {
        now = std::max(now, *due) + std::chrono::milliseconds{1};
        take(now, [&](TimePoint taken, std::uint64_t index) {
            ++count;
            checksum += index * static_cast<std::uint64_t>(taken.time_since_epoch().count());
            in_order = in_order && last <= taken && taken <= now;
            last = taken;
        });
    }
    const double end = cpu_now();
    verify(count == workload.dues.size() && in_order && checksum == workload.checksum, "everything comes in order");
    return (end - start) / static_cast<double>(workload.dues.size());
}

inline double run_schedule(const Workload& workload) {
    vigil::TimerSet<std::uint64_t> timers;
    return measure(
        workload, [&](TimePoint due, std::uint64_t index) { timers.add(TimePoint{}, due, std::move(index)); },
        [&](TimePoint now, auto&& check) {
            std::size_t unlimited = std::numeric_limits<std::size_t>::max();
            while (const auto head = timers.head(now, unlimited)) {
                const TimePoint due = head->due;
                check(due, timers.remove(*head));
            }
        },
        [&] { return timers.next_due(); });
}

inline double run_heap(const Workload& workload) {
    struct Entry {
        TimePoint due;
        std::uint64_t index;
        bool operator<(const Entry& other) const { return due != other.due ? due < other.due : index < other.index; }
    };
    vigil::MinHeap<Entry> heap;
    return measure(
        workload,
        [&](TimePoint due, std::uint64_t index) {
            heap.push({due, index});
        },
        [&](TimePoint now, auto&& check) {
            while (!heap.empty() && heap.top().due <= now) {
                check(heap.top().due, heap.top().index);
                heap.pop();
            }
        },
        [&] { return heap.empty() ? std::nullopt : std::optional(heap.top().due); });
}

}  // namespace bench::schedule
