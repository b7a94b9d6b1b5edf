#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include <vigil/queue/delayed_queue.hpp>

#include "failing_allocator.hpp"
#include "queue/random_time.hpp"

using namespace std::chrono_literals;
using std::chrono::years;
using vigil::Change;
using vigil::Delay;
using vigil::DelayedQueue;
using vigil::DueValue;
using vigil::Duration;
using vigil::Evicted;
using vigil::saturating_add;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Queue = DelayedQueue<int>;
using Values = std::vector<int>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr auto take_all = [](const auto&) {};

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// Everything that is due moves to a list.
template <class AnyQueue>
Values move_due(AnyQueue& queue, TimePoint now) {
    Values moved;
    while (queue.evict_due(now, unlimited, [&](const DueValue<int>& item) { moved.push_back(item.value); }).more) {
    }
    expect(queue.check(), "check()");
    return moved;
}

Values zero_to(int end) {
    Values values;
    for (int value = 0; value < end; ++value) values.push_back(value);
    return values;
}

}  // namespace

TEST_CASE("DelayedQueue keeps a value for its delay, then it moves") {
    Queue queue;
    REQUIRE(queue.empty());
    REQUIRE_FALSE(queue.next_due());
    REQUIRE_FALSE(queue.peek());
    queue.offer(TimePoint{10s}, 1, 5s);
    queue.offer(TimePoint{10s}, 0, 3s);
    REQUIRE(queue.size() == 2);
    REQUIRE(queue.next_due() == TimePoint{13s});
    REQUIRE(queue.peek()->value == 0);
    REQUIRE(queue.peek()->due == TimePoint{13s});
    REQUIRE(move_due(queue, TimePoint{13s} - 1us).empty());
    REQUIRE(move_due(queue, TimePoint{13s}) == Values{0});
    REQUIRE(queue.peek()->value == 1);
    REQUIRE(move_due(queue, TimePoint{15s}) == Values{1});
    REQUIRE(queue.empty());
    REQUIRE_FALSE(queue.next_due());
    REQUIRE_FALSE(queue.peek());
}

TEST_CASE("DelayedQueue keeps the order of values that are due at the same time") {
    Queue queue;
    for (int value = 0; value < 3000; ++value) queue.offer(TimePoint{1us * value}, int{value}, 5s - 1us * value);
    REQUIRE(move_due(queue, TimePoint{5s}) == zero_to(3000));
}

TEST_CASE("remove() gives a value back once, and it does not move") {
    Queue queue;
    queue.offer(TimePoint{}, 1, 1s);
    const auto handle = queue.offer(TimePoint{}, 2, 1s);
    REQUIRE(queue.remove(handle) == 2);
    REQUIRE_FALSE(queue.remove(handle));
    const auto reused = queue.offer(TimePoint{}, 3, 1s);
    REQUIRE(reused != handle);
    REQUIRE_FALSE(queue.remove(handle));
    REQUIRE(move_due(queue, TimePoint{1s}) == Values{1, 3});
    REQUIRE_FALSE(queue.remove(reused));
    REQUIRE_FALSE(queue.remove({}));
    REQUIRE_FALSE(queue.remove(Queue::Handle{77}));
}

TEST_CASE("DelayedQueue moves a hundred values in one go, and says that there are more") {
    Queue queue;
    for (int value = 0; value < 250; ++value) queue.offer(TimePoint{}, int{value}, 1s);
    for (const std::size_t expected : {100U, 100U}) {
        const Evicted evicted = queue.evict_due(TimePoint{1s}, unlimited, take_all);
        REQUIRE(evicted.items == expected);
        REQUIRE(evicted.more);
        REQUIRE_FALSE(evicted.refused);
    }
    const Evicted evicted = queue.evict_due(TimePoint{1s}, unlimited, take_all);
    REQUIRE(evicted.items == 50);
    REQUIRE_FALSE(evicted.more);
}

TEST_CASE("DelayedQueue moves batches of the size that it was given, and never more than the limit") {
    for (const std::size_t batch : {0, 1, 7, 1000}) {
        for (const std::size_t limit : {1, 5, 50}) {
            CAPTURE(batch, limit);
            Queue queue({.batch = batch});
            for (int value = 0; value < 60; ++value) queue.offer(TimePoint{}, int{value}, 1s);
            const std::size_t expected = std::min(std::max<std::size_t>(batch, 1), limit);
            REQUIRE(queue.evict_due(TimePoint{1s}, limit, take_all).items == expected);
            REQUIRE(move_due(queue, TimePoint{1s}).size() == 60 - expected);
        }
    }
    Queue queue;
    queue.offer(TimePoint{}, 7, 0s);
    const Evicted evicted = queue.evict_due(TimePoint{}, 0, take_all);
    REQUIRE(evicted.items == 0);
    REQUIRE(evicted.more);
}

TEST_CASE("A destination that is full keeps the rest waiting in order, and what is offered meanwhile behind it") {
    Queue queue;
    std::deque<int> destination;
    const auto take_while_room = [&](const DueValue<int>& item) {
        if (destination.size() == 10) return false;
        destination.push_back(item.value);
        return true;
    };
    int offered = 0;
    for (; offered < 25; ++offered) queue.offer(TimePoint{}, int{offered}, 1s);
    int taken = 0;
    for (TimePoint now{1s}; !queue.empty(); now += 1ms) {
        const Evicted evicted = queue.evict_due(now, unlimited, take_while_room);
        REQUIRE(evicted.refused == !queue.empty());
        REQUIRE_FALSE(evicted.more);
        REQUIRE((queue.empty() || queue.peek()->value == static_cast<int>(taken + destination.size())));
        REQUIRE(queue.check());
        if (offered < 40) queue.offer(now, offered++, 0s);
        for (int count = 0; count < 3 && !destination.empty(); ++count, destination.pop_front()) {
            REQUIRE(destination.front() == taken++);
        }
    }
    REQUIRE(taken + destination.size() == 40);
    for (const int value : destination) REQUIRE(value == taken++);
}

TEST_CASE("A negative delay counts as none, and a delay of years is kept") {
    Queue queue;
    const TimePoint now{12345h};
    queue.offer(now, 4, years{1000});
    queue.offer(now, 0, -1s);
    queue.offer(now, 1, Duration::min());
    queue.offer(now, 5, std::chrono::hours::max());
    queue.offer(now, 3, years{5});
    queue.offer(now, 2, 0s);
    REQUIRE(move_due(queue, now - 1us).empty());
    REQUIRE(move_due(queue, now) == Values{0, 1, 2});
    REQUIRE(move_due(queue, now + years{5} - 1us).empty());
    REQUIRE(move_due(queue, now + years{5}) == Values{3});
    REQUIRE(move_due(queue, now + years{1000}) == Values{4});
    REQUIRE(move_due(queue, TimePoint::max()) == Values{5});
    queue.offer(TimePoint::max() - 1s, 6, 1h);
    REQUIRE(queue.next_due() == TimePoint::max());
    REQUIRE(move_due(queue, TimePoint::max()) == Values{6});
}

TEST_CASE("A sink that removes what it is given finds it gone, and may remove and offer others") {
    Queue queue;
    std::vector<Queue::Handle> handles;
    for (int value = 0; value < 5; ++value) handles.push_back(queue.offer(TimePoint{}, int{value}, 1s));
    Values moved;
    queue.evict_due(TimePoint{2s}, unlimited, [&](const DueValue<int>& item) {
        moved.push_back(item.value);
        if (item.value < 5) expect(!queue.remove(handles[static_cast<std::size_t>(item.value)]), "its handle is stale");
        if (item.value != 0) return;
        expect(queue.remove(handles[3]) == 3, "another can be removed");
        queue.offer(TimePoint{2s}, 10, 0s);
        queue.offer(TimePoint{}, 11, 500ms);
        queue.offer(TimePoint{2s}, 12, 1us);
    });
    REQUIRE(moved == Values{0, 11, 1, 2, 4, 10});
    REQUIRE(queue.check());
    REQUIRE(move_due(queue, TimePoint{3s}) == Values{12});
}

TEST_CASE("DelayedQueue moves what is left of thousands due at once when the rest is removed halfway") {
    for (const std::size_t limit : {1, 10, 100}) {
        for (const std::size_t kept : {1, 10, 1500}) {
            CAPTURE(limit, kept);
            Queue queue;
            std::vector<Queue::Handle> handles;
            for (int value = 0; value < 3000; ++value) handles.push_back(queue.offer(TimePoint{}, int{value}, 5s));
            queue.offer(TimePoint{}, 3000, 9s);
            const std::size_t moved = queue.evict_due(TimePoint{5s}, limit, take_all).items;
            for (std::size_t value = moved + kept; value < 3000; ++value) queue.remove(handles[value]);
            REQUIRE(queue.next_due() == TimePoint{5s});
            REQUIRE(queue.check());
            REQUIRE(move_due(queue, TimePoint{5s}).size() == kept);
            REQUIRE(move_due(queue, TimePoint{9s}) == Values{3000});
        }
    }
}

TEST_CASE("A value that was refused, or whose sink threw, is as it was") {
    Queue queue;
    const auto handle = queue.offer(TimePoint{}, 0, 1s);
    queue.offer(TimePoint{}, 1, 1s);
    const Evicted evicted = queue.evict_due(TimePoint{1s}, unlimited, [](const DueValue<int>&) { return false; });
    REQUIRE(evicted.items == 0);
    REQUIRE(evicted.refused);
    REQUIRE_THROWS_AS(queue.evict_due(TimePoint{1s}, 10, [](const DueValue<int>&) { throw std::logic_error("no"); }),
                      std::logic_error);
    REQUIRE(queue.size() == 2);
    REQUIRE(queue.peek()->value == 0);
    REQUIRE(queue.check());
    REQUIRE(queue.remove(handle) == 0);
    REQUIRE(move_due(queue, TimePoint{1s}) == Values{1});
}

TEST_CASE("DelayedQueue keeps no value that was removed, has moved, or that it was destroyed with") {
    using Shared = std::shared_ptr<int>;
    const Shared value = std::make_shared<int>(7);
    {
        DelayedQueue<Shared> queue;
        const auto removed = queue.offer(TimePoint{}, Shared(value), 1s);
        queue.offer(TimePoint{}, Shared(value), 1s);
        queue.offer(TimePoint{}, Shared(value), 2s);
        queue.offer(TimePoint{}, Shared(value), 3s);
        REQUIRE(value.use_count() == 5);
        REQUIRE(queue.remove(removed) == value);
        REQUIRE(value.use_count() == 4);
        queue.evict_due(TimePoint{1s}, 10, take_all);
        REQUIRE(value.use_count() == 3);
        Shared taken;
        queue.evict_due(TimePoint{2s}, 10, [&](const DueValue<Shared>& item) { taken = std::move(item.value); });
        REQUIRE(taken == value);
        REQUIRE(value.use_count() == 3);
    }
    REQUIRE(value.use_count() == 1);
}

TEST_CASE("A DelayedQueue that is moved takes everything along") {
    Queue queue({.batch = 10});
    const auto handle = queue.offer(TimePoint{}, -1, 1s);
    for (int value = 0; value < 2000; ++value) queue.offer(TimePoint{}, int{value}, 1s);
    Queue moved(std::move(queue));
    REQUIRE(moved.check());
    REQUIRE(moved.remove(handle) == -1);
    REQUIRE(moved.evict_due(TimePoint{1s}, unlimited, take_all).items <= 10);
    queue = std::move(moved);
    while (queue.size() > 1000) queue.evict_due(TimePoint{1s}, 1, take_all);
    REQUIRE(queue.peek()->value == 1000);
    REQUIRE(move_due(queue, TimePoint{1s}).size() == 1000);
}

namespace {

/// Keeps what is in the queue, as told.
template <class T>
struct Mirror {
    std::map<std::uint32_t, TimePoint> kept;
    std::size_t calls = 0;
    bool consistent = true;  // each is added once and removed once

    void changed(std::uint32_t slot, const DueValue<T>& item, Change change) noexcept {
        ++calls;
        consistent = consistent && change == Change::added && kept.emplace(slot, item.due).second;
        if constexpr (std::is_same_v<T, int>) values[slot] = item.value;
    }
    void removed(std::uint32_t slot) noexcept {
        ++calls;
        consistent = consistent && kept.erase(slot) == 1;
    }
    std::map<std::uint32_t, int> values;
};

}  // namespace

TEST_CASE("An observer of a DelayedQueue knows what is in it, and is not told of what is restored") {
    Random random;
    CAPTURE(random.seed());
    using ObservedQueue = DelayedQueue<int, Mirror<int>>;
    ObservedQueue queue;
    const Mirror<int>& mirror = queue.observer();
    std::map<int, std::pair<ObservedQueue::Handle, TimePoint>> live;
    TimePoint now{};
    for (int value = 0; value < 20'000; ++value) {
        const Duration delay{random.below(1'000'000)};
        live[value] = {queue.offer(now, int{value}, delay), now + delay};
        if (live.size() > 1500 || random.one_in(3)) {
            const auto handle = live.begin()->second.first;
            expect(queue.remove(handle) && !queue.remove(handle), "it can be removed once");
            live.erase(live.begin());
        }
        now += Duration{random.below(300)};
        const bool refuses = random.one_in(4);
        queue.evict_due(now, 1 + random.below(30), [&](const DueValue<int>& item) {
            if (!refuses) live.erase(item.value);
            return !refuses;
        });
        expect(mirror.consistent && mirror.kept.size() == live.size(), "it knows how many there are");
        if (value % 500 != 0) continue;
        for (const auto& [slot, due] : mirror.kept) {
            const auto found = live.find(mirror.values.at(slot));
            expect(found != live.end() && found->second.second == due, "it knows what is there");
        }
    }
    ObservedQueue restored;
    std::multimap<TimePoint, int> expected;
    std::map<std::uint32_t, TimePoint> as_restored;
    for (const auto& [slot, due] : mirror.kept) {
        expected.emplace(due, mirror.values.at(slot));
        as_restored.emplace(static_cast<std::uint32_t>(restored.restore(now, due, int{mirror.values.at(slot)})), due);
    }
    REQUIRE(restored.observer().calls == 0);
    REQUIRE(restored.size() == live.size());
    restored.observer().kept = as_restored;
    for (const int value : move_due(restored, TimePoint::max())) {
        expect(value == expected.begin()->second, "what was restored moves");
        expected.erase(expected.begin());
    }
    REQUIRE(expected.empty());
    REQUIRE(restored.observer().consistent);
    REQUIRE(restored.observer().kept.empty());
}

TEST_CASE("An observer knows what a value offers when it is destroyed after it moved") {
    struct Repeated;
    using RepeatedQueue = DelayedQueue<std::shared_ptr<Repeated>, Mirror<std::shared_ptr<Repeated>>>;
    struct Repeated {
        RepeatedQueue& queue;
        explicit Repeated(RepeatedQueue& in) : queue(in) {}
        ~Repeated() { queue.offer(TimePoint{1s}, nullptr, 1s); }
    };
    RepeatedQueue queue;
    queue.offer(TimePoint{}, std::make_shared<Repeated>(queue), 1s);
    queue.evict_due(TimePoint{1s}, 10, take_all);
    REQUIRE(queue.size() == queue.observer().kept.size());
    REQUIRE(queue.observer().consistent);
}

namespace {

using Id = std::size_t;
using Value = std::unique_ptr<Id>;
using ValueQueue = DelayedQueue<Value>;

/// A queue beside a sorted set that holds the same; each value is its own id.
class CheckedQueue {
   public:
    CheckedQueue(std::size_t batch, TimePoint start) : queue({.batch = batch}), now(start), batch_(batch) {}

    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] Id random_live(Random& random) const { return live_[random.below(live_.size())]; }
    [[nodiscard]] Id random_id(Random& random) const { return random.below(known_.size()); }
    [[nodiscard]] ValueQueue::Handle handle(Id id) const { return known_[id].handle; }

    /// False if memory ran out, and then the queue must be as it was.
    bool offer(Delay delay, std::size_t allowed_allocations = unlimited) {
        auto value = std::make_unique<Id>(known_.size());
        const auto next_due = queue.next_due();
        ValueQueue::Handle handle;
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            handle = queue.offer(now, std::move(value), delay);
        } catch (const std::bad_alloc&) {
            expect(queue.next_due() == next_due, "the next due is as it was");
            compare();
            return false;
        }
        added(saturating_add(now, delay.value()), handle);
        return true;
    }
    void restore(TimePoint due) { added(due, queue.restore(now, due, std::make_unique<Id>(known_.size()))); }

    void remove(Id id) {
        const auto value = queue.remove(handle(id));
        expect(value.has_value() == known_[id].live, "what waits, and only that, can be removed");
        if (!value) return;
        expect(**value == id, "the value comes back");
        forget(id);
    }
    void peek() {
        const auto head = queue.peek();
        expect(head.has_value() == (size() > 0), "there is a head if there is any");
        if (head) expect(*head->value == first() && head->due == first_due(), "it is the one that moves next");
    }

    /// `sink(id)` may change the queue, and returns whether it takes the value.
    template <class Sink>
    Evicted evict(std::size_t limit, Sink&& sink, std::size_t allowed_allocations = unlimited) {
        std::size_t taken = 0;
        bool refused = false;
        const AllocationsFailAfter limited{allowed_allocations};
        const Evicted evicted = queue.evict_due(now, limit, [&](const DueValue<Value>& item) {
            expect(!refused, "nothing is offered after a refusal");
            expect(item.due <= now, "nothing is early");
            const Id id = first();
            expect(*item.value == id && item.due == first_due(), "the earliest comes first");
            refused = !sink(id);
            if (refused) return false;
            forget(id);
            ++taken;
            return true;
        });
        expect(evicted.items == taken && evicted.refused == refused, "what was done is said");
        expect(taken <= limit && taken <= batch_, "limit and batch are kept");
        expect(evicted.more || refused || model_.empty() || first_due() > now, "all that is due moves");
        return evicted;
    }
    void drain() {
        now = TimePoint::max();
        while (evict(unlimited, [](Id) { return true; }).more) {
        }
        REQUIRE(queue.empty());
        REQUIRE(size() == 0);
        REQUIRE(queue.check());
    }

    void compare() const {
        expect(queue.size() == size() && queue.empty() == live_.empty(), "the size");
        const auto next_due = queue.next_due();
        expect(next_due.has_value() == !live_.empty(), "there is a next due if there is any");
        expect(live_.empty() || *next_due <= first_due(), "it is not late");
    }

    ValueQueue queue;
    TimePoint now;

   private:
    struct Known {
        ValueQueue::Handle handle;
        TimePoint due;
        std::size_t index;  // in live_
        bool live;
    };

    [[nodiscard]] TimePoint first_due() const { return std::get<TimePoint>(*model_.begin()); }
    [[nodiscard]] Id first() const { return std::get<Id>(*model_.begin()); }
    void added(TimePoint due, ValueQueue::Handle handle) {
        const Id id = known_.size();
        known_.push_back({handle, due, live_.size(), true});
        live_.push_back(id);
        model_.emplace(due, id);
    }
    void forget(Id id) {
        expect(model_.erase({known_[id].due, id}) == 1, "each value is there once");
        known_[id].live = false;
        live_[known_[id].index] = live_.back();
        known_[live_.back()].index = known_[id].index;
        live_.pop_back();
    }

    std::size_t batch_;
    std::vector<Known> known_;
    std::vector<Id> live_;
    std::set<std::tuple<TimePoint, Id>> model_;  // ids grow as sequences do
};

std::size_t random_limit(Random& random) {
    const std::size_t limits[] = {0, 1, 2, 15, 16, 100, unlimited};
    return limits[random.below(std::size(limits))];
}

void offer_random(CheckedQueue& checked, Random& random) {
    const TimePoint due = random_due(random, checked.now);
    if (due < checked.now || checked.now < TimePoint{} || random.one_in(8)) {
        checked.restore(due);
    } else {
        checked.offer(due - checked.now);
    }
}

void random_step(CheckedQueue& checked, Random& random, std::size_t around) {
    if (random.one_in(8)) checked.now = random_step_from(random, checked.now, checked.queue.next_due());
    if (checked.size() == 0 || random.below(2 * around) >= checked.size()) return offer_random(checked, random);
    if (random.one_in(100)) return checked.peek();
    if (random.one_in(3)) {
        return checked.remove(random.one_in(2) ? checked.random_live(random) : checked.random_id(random));
    }
    const auto refuses_one_in = random.one_in(2) ? 4 : 1'000'000;
    const auto changes_one_in = random.one_in(2) ? 3 : 1'000'000;
    checked.evict(random_limit(random), [&](Id id) {
        expect(!checked.queue.remove(checked.handle(id)), "a sink cannot remove what it has");
        if (random.one_in(changes_one_in)) offer_random(checked, random);
        if (random.one_in(refuses_one_in)) return false;
        if (const Id other = checked.random_live(random); other != id && random.one_in(changes_one_in)) {
            checked.remove(other);
        }
        return true;
    });
}

}  // namespace

TEST_CASE("DelayedQueue moves everything in order of due and sequence, nothing early and nothing lost") {
    Random random;
    CAPTURE(random.seed());
    const TimePoint starts[] = {TimePoint{}, TimePoint{-10s}, TimePoint{12345h}, TimePoint::max() - 1min};
    for (const TimePoint start : starts) {
        for (const std::size_t around : {50, 1100, 5000}) {
            const std::size_t batch = around == 50 ? 1 + random.below(30) : 100;
            CAPTURE(start, around, batch);
            CheckedQueue checked(batch, start);
            for (int step = 0; step < 90'000; ++step) {
                random_step(checked, random, around);
                checked.compare();
                if (step % 3000 == 0) expect(checked.queue.check(), "check()");
            }
            checked.drain();
        }
    }
}

TEST_CASE("DelayedQueue is as it was when memory runs out in offer") {
    Random random;
    CAPTURE(random.seed());
    CheckedQueue checked(100, TimePoint{12345h});
    std::size_t failures = 0;
    for (int count = 0; count < 10'000; ++count) {
        const Duration delay{random.below(random.one_in(3) ? Duration{100h}.count() : Duration{20s}.count())};
        for (std::size_t allowed = 0; !checked.offer(delay, allowed); ++allowed, ++failures) {
            if (failures % 20 == 0) expect(checked.queue.check(), "check()");
        }
    }
    REQUIRE(failures >= 50);
    checked.drain();
}

TEST_CASE("DelayedQueue loses nothing when memory runs out in evict_due") {
    CheckedQueue checked(100, TimePoint{});
    for (int count = 0; count < 10'000; ++count) checked.offer(5s + 1us * (count * 389 % 1000));
    checked.now = TimePoint{6s};
    std::size_t failures = 0;
    const auto evicts = [&](std::size_t allowed) {
        try {
            return checked
                .evict(
                    50, [](Id) { return true; }, allowed)
                .more;
        } catch (const std::bad_alloc&) {
            ++failures;
            return true;
        }
    };
    for (std::size_t calls = 0; evicts(calls % 3); ++calls) {
        checked.compare();
        if (calls % 10 == 0) expect(checked.queue.check(), "check()");
    }
    REQUIRE(failures >= 5);
    REQUIRE(checked.queue.empty());
}
