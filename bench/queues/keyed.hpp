#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "../harness.hpp"

/// The keyed queue and the literal design of the seed: a std::priority_queue and two std::unordered_map.
namespace bench::keyed {

using vigil::Duration;
using vigil::TimePoint;

constexpr std::size_t key_size = 10;
constexpr std::size_t data_size = 40;

/// Messages of random keys that arrive within a second, each due 3 to 15 s after its arrival.
struct Workload {
    struct Message {
        std::array<char, key_size> key;
        std::array<char, data_size> data;
        Duration arrival, due;

        [[nodiscard]] std::string_view key_view() const { return {key.data(), key.size()}; }
        [[nodiscard]] std::string_view data_view() const { return {data.data(), data.size()}; }
    };
    std::vector<Message> messages;
    std::uint64_t evictions = 0;  // expected
    std::uint64_t checksum = 0;   // expected

    Workload(std::size_t count, std::size_t keys, std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::uniform_int_distribution<std::uint64_t> key(0, keys - 1), delay(3'000'000, 15'000'000);
        std::unordered_map<std::uint64_t, std::size_t> last;
        messages.resize(count);
        for (std::size_t index = 0; index < count; ++index) {
            Message& message = messages[index];
            const std::uint64_t number = key(random);
            write(message.key, number);
            write(message.data, random() % 1'000'000'007);
            message.arrival = Duration{static_cast<std::int64_t>(index * 1'000'000 / count)};
            message.due = message.arrival + Duration{static_cast<std::int64_t>(delay(random))};
            last[number] = index;
        }
        evictions = last.size();
        for (const auto& [number, index] : last) {
            checksum += sum(messages[index].key_view(), messages[index].data_view(), messages[index].due);
        }
    }

    /// What an eviction adds to the checksum: all of the item.
    static std::uint64_t sum(std::string_view key, std::string_view data, Duration due) {
        const auto word = [](std::string_view bytes, std::size_t at) {
            std::uint64_t value;
            std::memcpy(&value, bytes.data() + at, sizeof value);
            return value;
        };
        return word(key, 2) * 31 + word(data, 0) + word(data, data_size - 8) * 17 +
               static_cast<std::uint64_t>(due.count());
    }

   private:
    template <std::size_t size>
    static void write(std::array<char, size>& digits, std::uint64_t number) {
        for (std::size_t at = size; at-- > 0; number /= 10) digits[at] = static_cast<char>('0' + number % 10);
    }
};

/// What came out, to be verified. Items must come in order of due and not before it.
struct Evictions {
    std::uint64_t count = 0, checksum = 0;
    TimePoint last = TimePoint::min();
    bool in_order = true;

    void operator()(std::string_view key, std::string_view data, TimePoint due, TimePoint base, TimePoint now) {
        ++count;
        checksum += Workload::sum(key, data, due - base);
        in_order = in_order && due >= last && due <= now;
        last = due;
    }
    void verify(const Workload& workload) const {
        bench::verify(count == workload.evictions, "each key is evicted once");
        bench::verify(checksum == workload.checksum, "each with its last data, at its last due");
        bench::verify(in_order, "in order of due, none early");
    }
};

/// The seed's pseudo code in C++, with the clock of the caller.
class Literal {
   public:
    void push(const Workload::Message& message, TimePoint base) {
        const std::string key(message.key_view());
        data_[key] = message.data_view();
        priorities_[key] = base + message.due;
        queue_.push({base + message.due, key});
    }
    template <class Sink>
    void evict_due(TimePoint now, Sink&& sink) {
        while (!queue_.empty() && queue_.top().due <= now) {
            const Entry entry = queue_.top();
            queue_.pop();
            const auto priority = priorities_.find(entry.key);
            if (priority == priorities_.end() || priority->second != entry.due) continue;
            const auto data = data_.find(entry.key);
            sink(entry.key, data->second, entry.due);
            data_.erase(data);
            priorities_.erase(priority);
        }
    }
    [[nodiscard]] std::optional<TimePoint> next_due() const {
        return queue_.empty() ? std::nullopt : std::optional(queue_.top().due);
    }

   private:
    struct Entry {
        TimePoint due;
        std::string key;
        bool operator<(const Entry& other) const { return due > other.due; }
    };
    std::priority_queue<Entry> queue_;
    std::unordered_map<std::string, TimePoint> priorities_;
    std::unordered_map<std::string, std::string> data_;
};

/// CPU nanoseconds per message.
struct Phases {
    double push = 0, evict = 0;
    [[nodiscard]] double total() const { return push + evict; }
};

/// Times what `push_all` and then `evict(now)` do, the latter at every millisecond at which `next_due()` has something.
template <class PushAll, class Evict, class NextDue>
Phases measure(const Workload& workload, TimePoint base, PushAll push_all, Evict evict, NextDue next_due) {
    const auto messages = static_cast<double>(workload.messages.size());
    const double start = cpu_now();
    push_all();
    const double pushed = cpu_now();
    TimePoint now = base + std::chrono::seconds{1};
    for (auto due = next_due(); due; due = next_due()) {
        now = std::max(now, *due) + std::chrono::milliseconds{1};
        evict(now);
    }
    const double evicted = cpu_now();
    return {(pushed - start) / messages, (evicted - pushed) / messages};
}

inline Phases run_literal(Literal& queue, const Workload& workload, TimePoint base) {
    Evictions evictions;
    const auto phases = measure(
        workload, base,
        [&] {
            for (const auto& message : workload.messages) queue.push(message, base);
        },
        [&](TimePoint now) {
            queue.evict_due(now, [&](const std::string& key, const std::string& data, TimePoint due) {
                evictions(key, data, due, base, now);
            });
        },
        [&] { return queue.next_due(); });
    evictions.verify(workload);
    return phases;
}

/// `batch`: how many messages are pushed at once.
inline Phases run_vigil(vigil::PriorityHashQueue& queue, const Workload& workload, TimePoint base, std::size_t batch) {
    Evictions evictions;
    std::vector<vigil::Push> pushes(batch);
    const auto push_all = [&] {
        const auto& messages = workload.messages;
        if (batch == 1) {
            for (const auto& message : messages) {
                queue.push(base + message.arrival, message.key_view(), message.data_view(), base + message.due);
            }
            return;
        }
        for (std::size_t first = 0; first < messages.size(); first += batch) {
            const std::size_t count = std::min(batch, messages.size() - first);
            for (std::size_t index = 0; index < count; ++index) {
                const auto& message = messages[first + index];
                pushes[index].key = message.key_view();
                pushes[index].data = message.data_view();
                pushes[index].due = base + message.due;
            }
            queue.push(base + messages[first].arrival, std::span(pushes).first(count));
        }
    };
    const auto phases = measure(
        workload, base, push_all,
        [&](TimePoint now) {
            queue.evict_due(now, std::numeric_limits<std::size_t>::max(), [&](const vigil::KeyedItem& item) {
                evictions(item.key, item.data.front(), item.due, base, now);
            });
        },
        [&] { return queue.next_due(); });
    evictions.verify(workload);
    return phases;
}

}  // namespace bench::keyed
