#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <random>
#include <string>
#include <vigil/queue/priority_hash_queue.hpp>

#include "../harness.hpp"

/// What a keyed queue needs while it grows: memory, and the time of its slowest call.
namespace bench::growth {

using vigil::Duration;
using vigil::TimePoint;

struct Growth {
    double resident_bytes_each = 0;
    double slowest_call = 0;       // CPU milliseconds of one push
    double entries_for_items = 0;  // the most that the schedule held, for each item, under pushes, moves and cancels
};

inline double thread_cpu_now() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

inline std::string key_of(std::uint64_t number) {
    std::string key = std::to_string(number);
    return key.insert(0, 10 - std::min<std::size_t>(key.size(), 10), '0');
}

inline Growth grow(std::size_t items) {
    Growth growth;
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::int64_t> delay(3'000'000, 15'000'000);
    const std::string data(40, 'd');
    const double before = resident_bytes();
    vigil::PriorityHashQueue queue;
    for (std::size_t index = 0; index < items; ++index) {
        const std::string key = key_of(index);
        const TimePoint due{Duration{delay(random)}};
        const double start = thread_cpu_now();
        queue.push(TimePoint{}, key, data, due);
        growth.slowest_call = std::max(growth.slowest_call, (thread_cpu_now() - start) / 1e6);
    }
    verify(queue.size() == items, "all items are there");
    growth.resident_bytes_each = (resident_bytes() - before) / static_cast<double>(items);

    for (std::size_t count = 0; count < 200'000; ++count) {
        const std::string key = key_of(random() % items);
        switch (random() % 3) {
            case 0:
                queue.push(TimePoint{}, key, data, TimePoint{Duration{delay(random)}});
                break;
            case 1:
                queue.reschedule(TimePoint{}, key, TimePoint{Duration{delay(random)}});
                break;
            default:
                queue.cancel(key);
        }
        if (queue.empty()) break;
        growth.entries_for_items = std::max(growth.entries_for_items,
                                            static_cast<double>(queue.entries()) / static_cast<double>(queue.size()));
    }
    return growth;
}

/// In a process of its own, whose memory nothing else has touched.
inline Growth measure(std::size_t items) {
    std::array<int, 2> pipe_ends{};
    verify(pipe(pipe_ends.data()) == 0, "a pipe");
    const pid_t child = fork();
    verify(child >= 0, "a process");
    if (child == 0) {
        const Growth growth = grow(items);
        const bool written = write(pipe_ends[1], &growth, sizeof growth) == sizeof growth;
        _exit(written ? 0 : 1);
    }
    Growth growth;
    const bool complete = read(pipe_ends[0], &growth, sizeof growth) == sizeof growth;
    int status = 0;
    waitpid(child, &status, 0);
    verify(complete && status == 0, "the queue grows");
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    return growth;
}

}  // namespace bench::growth
