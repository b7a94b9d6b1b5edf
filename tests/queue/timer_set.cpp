#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <tuple>
#include <utility>
#include <vector>
#include <vigil/queue/timer_set.hpp>

#include "failing_allocator.hpp"
#include "queue/random_time.hpp"

using namespace std::chrono_literals;
using vigil::Duration;
using vigil::saturating_add;
using vigil::TimePoint;
using vigil::TimerSet;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Id = std::size_t;
using Value = std::unique_ptr<Id>;
using Timers = TimerSet<Value>;
using Handle = Timers::Handle;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// A timer set beside a sorted set that holds the same; each value is its own id.
class CheckedTimers {
   public:
    explicit CheckedTimers(TimePoint start) : now(start) {}

    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] Id random_live(Random& random) const { return live_[random.below(live_.size())]; }
    [[nodiscard]] Id random_id(Random& random) const { return random.below(known_.size()); }
    [[nodiscard]] Handle handle(Id id) const { return known_[id].handle; }

    /// False if memory ran out.
    bool add(TimePoint due, std::size_t allowed_allocations = unlimited) {
        const Id id = known_.size();
        auto value = std::make_unique<Id>(id);
        Known added{{}, due, timers.next_sequence(), live_.size(), true};
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            added.handle = timers.add(now, due, std::move(value));
        } catch (const std::bad_alloc&) {
            expect(value != nullptr && *value == id, "a value that is not added is not taken");
            return false;
        }
        expect(added.handle != Handle{0}, "0 is never a handle");
        expect(timers.next_sequence() == added.sequence + 1, "the sequence goes on");
        known_.push_back(added);
        live_.push_back(id);
        model_.emplace(due, added.sequence, id);
        return true;
    }

    /// A handle that is no longer pending must do nothing.
    void remove(Id id) {
        const auto value = timers.remove(handle(id));
        expect(value.has_value() == known_[id].live, "what is pending, and only that, can be removed");
        if (!value) return;
        expect(**value == id, "the value comes back");
        forget(id);
    }
    void find(Id id) {
        const Value* value = timers.find(handle(id));
        expect((value != nullptr) == known_[id].live, "what is pending, and only that, can be found");
        expect(value == nullptr || **value == id, "the right value is found");
    }
    /// False if memory ran out.
    bool reschedule(Id id, TimePoint due, std::size_t allowed_allocations = unlimited) {
        auto& known = known_[id];
        const auto sequence = timers.next_sequence();
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            expect(timers.reschedule(known.handle, now, due) == known.live, "what is pending can be rescheduled");
        } catch (const std::bad_alloc&) {
            return false;
        }
        if (!known.live) return true;
        model_.erase({known.due, known.sequence, id});
        known.due = due;
        known.sequence = sequence;
        model_.emplace(due, sequence, id);
        return true;
    }

    /// One call of head(), its answer checked and removed. False if nothing is due.
    bool take(std::size_t limit) {
        const std::size_t given = limit;
        const auto head = timers.head(now, limit);
        expect(limit <= given, "the limit is never raised");
        if (!head) {
            const bool done = model_.empty() || std::get<TimePoint>(*model_.begin()) > now;
            expect(done || limit == 0, "what is due comes out unless the limit is used up");
            return !done;
        }
        expect(head->due <= now, "nothing is early");
        const Id id = std::get<2>(*model_.begin());
        expect(*head->value == id && head->handle == handle(id), "the earliest comes first");
        expect(head->due == known_[id].due && head->sequence == known_[id].sequence, "with its due and sequence");
        const auto value = timers.remove(*head);
        expect(*value == id, "the value comes out");
        forget(id);
        return true;
    }

    void compare() const {
        expect(timers.size() == size() && timers.empty() == live_.empty(), "the size");
        const auto next_due = timers.next_due();
        expect(next_due.has_value() == !live_.empty(), "there is a next due if there is any");
        expect(live_.empty() || *next_due <= std::get<TimePoint>(*model_.begin()), "it is not later than any");
    }
    void drain() {
        now = TimePoint::max();
        while (take(unlimited)) {
        }
        REQUIRE(timers.empty());
        REQUIRE(size() == 0);
        REQUIRE(timers.check());
    }

    Timers timers;
    TimePoint now;

   private:
    struct Known {
        Handle handle;
        TimePoint due;
        std::uint64_t sequence;
        std::size_t index;  // in live_
        bool live;
    };

    void forget(Id id) {
        expect(model_.erase({known_[id].due, known_[id].sequence, id}) == 1, "each value is there once");
        known_[id].live = false;
        live_[known_[id].index] = live_.back();
        known_[live_.back()].index = known_[id].index;
        live_.pop_back();
    }

    std::vector<Known> known_;
    std::vector<Id> live_;
    std::set<std::tuple<TimePoint, std::uint64_t, Id>> model_;
};

void random_step(CheckedTimers& checked, Random& random, std::size_t around) {
    if (random.one_in(8)) checked.now = random_step_from(random, checked.now, checked.timers.next_due());
    if (checked.size() == 0 || random.below(2 * around) >= checked.size()) {
        checked.add(random_due(random, checked.now));
        return;
    }
    const Id id = random.one_in(2) ? checked.random_live(random) : checked.random_id(random);
    const std::size_t limits[] = {0, 1, 2, 15, 16, 100, unlimited};
    switch (random.below(7)) {
        case 0:
        case 1:
            return checked.remove(id);
        case 2:
            return checked.find(id);
        case 3:
            checked.reschedule(id, random_due(random, checked.now));
            break;
        default:
            checked.take(limits[random.below(std::size(limits))]);
    }
}

}  // namespace

TEST_CASE("TimerSet gives everything in order of due and sequence, nothing early and nothing lost") {
    Random random;
    CAPTURE(random.seed());
    const TimePoint starts[] = {TimePoint{}, TimePoint{-10s}, TimePoint{12345h}, TimePoint::min(),
                                TimePoint::max() - 1min};
    for (const TimePoint start : starts) {
        for (const std::size_t around : {200, 1100, 10'000}) {
            CAPTURE(start, around);
            CheckedTimers checked(start);
            for (int step = 0; step < 150'000; ++step) {
                random_step(checked, random, around);
                checked.compare();
                if (step % 2000 == 0) expect(checked.timers.check(), "check()");
            }
            checked.drain();
        }
    }
}

TEST_CASE("TimerSet keeps equal dues in their order, rescheduled ones last") {
    CheckedTimers checked(TimePoint{});
    for (Id id = 0; id < 3000; ++id) checked.add(TimePoint{5s});
    for (Id id = 0; id < 3000; id += 7) checked.reschedule(id, TimePoint{5s});
    for (Id id = 3; id < 3000; id += 7) checked.reschedule(id, TimePoint{1s});
    checked.drain();
}

TEST_CASE("TimerSet never gives the same handle twice") {
    TimerSet<int> timers;
    std::set<TimerSet<int>::Handle> handles;
    std::vector<TimerSet<int>::Handle> pending;
    for (int count = 0; count < 100'000; ++count) {
        pending.push_back(timers.add(TimePoint{}, TimePoint{Duration{count % 977}}, int{count}));
        handles.insert(pending.back());
        if (count % 5 == 0) continue;
        expect(timers.remove(pending.back()).has_value(), "a new handle is pending");
        pending.pop_back();
    }
    REQUIRE(handles.size() == 100'000);
    REQUIRE(timers.size() == pending.size());
}

TEST_CASE("A handle that is no longer pending does nothing, though its place is used again") {
    CheckedTimers checked(TimePoint{});
    checked.add(TimePoint{1s});
    checked.remove(0);
    checked.add(TimePoint{2s});
    checked.add(TimePoint{3s});
    checked.remove(0);
    checked.find(0);
    checked.reschedule(0, TimePoint{4s});
    REQUIRE(checked.timers.size() == 2);
    checked.now = TimePoint{2s};
    REQUIRE(checked.take(unlimited));
    checked.remove(1);
    checked.drain();
}

TEST_CASE("Handle 0, and one that the set never gave, do nothing") {
    TimerSet<int> timers;
    for (int count = 0; count < 3; ++count) {
        for (const std::uint64_t never_given : {std::uint64_t{0}, std::uint64_t{77}, ~std::uint64_t{0}}) {
            const TimerSet<int>::Handle handle{never_given};
            REQUIRE_FALSE(timers.remove(handle));
            REQUIRE(timers.find(handle) == nullptr);
            REQUIRE_FALSE(timers.reschedule(handle, TimePoint{}, TimePoint{}));
        }
        (void)timers.add(TimePoint{}, TimePoint{1s}, 7);
    }
    REQUIRE(timers.size() == 3);
}

TEST_CASE("The value that find() gives can be changed in its place") {
    TimerSet<int> timers;
    const auto handle = timers.add(TimePoint{}, TimePoint{1s}, 7);
    *timers.find(handle) = 8;
    REQUIRE(timers.remove(handle) == 8);
}

TEST_CASE("The next sequence tells what was there before from what came later") {
    TimerSet<int> timers;
    const auto first = timers.add(TimePoint{}, TimePoint{1s}, 1);
    const auto later = timers.next_sequence();
    (void)timers.add(TimePoint{}, TimePoint{1s}, 2);
    std::size_t limit = unlimited;
    REQUIRE(timers.head(TimePoint{1s}, limit)->sequence < later);
    REQUIRE(timers.reschedule(first, TimePoint{}, TimePoint{1s}));
    REQUIRE(timers.head(TimePoint{1s}, limit)->value == 2);
    REQUIRE(timers.head(TimePoint{1s}, limit)->sequence == later);
    REQUIRE(timers.next_sequence() == later + 2);
}

TEST_CASE("TimerSet called again and again gets through any number, whatever the limit") {
    for (const std::size_t limit : {1, 15, 1000}) {
        CheckedTimers checked(TimePoint{});
        for (int count = 0; count < 10'000; ++count) checked.add(TimePoint{5s + Duration{count % 3}});
        checked.now = TimePoint{6s};
        std::size_t calls = 0;
        while (checked.take(limit)) ++calls;
        REQUIRE(checked.timers.empty());
        REQUIRE(calls > 10'000);
        REQUIRE(calls <= 2 * 10'000);
    }
}

TEST_CASE("TimerSet destroys the values that it still holds, and keeps none that it gave back") {
    const auto value = std::make_shared<int>(7);
    {
        TimerSet<std::shared_ptr<int>> timers;
        const auto removed = timers.add(TimePoint{}, TimePoint{1s}, std::shared_ptr(value));
        (void)timers.add(TimePoint{}, TimePoint{2s}, std::shared_ptr(value));
        REQUIRE(value.use_count() == 3);
        REQUIRE(timers.remove(removed).has_value());
        REQUIRE(value.use_count() == 2);
    }
    REQUIRE(value.use_count() == 1);
}

TEST_CASE("A TimerSet that is moved takes everything along, and its handles stay good") {
    Random random;
    CAPTURE(random.seed());
    CheckedTimers checked(TimePoint{});
    for (int round = 0; round < 20; ++round) {
        for (int step = 0; step < 3000; ++step) random_step(checked, random, 5000);
        Timers moved(std::move(checked.timers));
        REQUIRE(moved.check());
        REQUIRE(checked.timers.check());
        checked.timers = std::move(moved);
        checked.compare();
        REQUIRE(checked.timers.check());
    }
    checked.drain();
}

TEST_CASE("A TimerSet that was moved from is empty") {
    Timers timers;
    for (Id id = 0; id < 3000; ++id) (void)timers.add(TimePoint{}, TimePoint{5s}, std::make_unique<Id>(id));
    const Timers moved(std::move(timers));
    REQUIRE(moved.size() == 3000);
    REQUIRE(timers.empty());
    REQUIRE(timers.size() == 0);
    REQUIRE_FALSE(timers.next_due());
}

TEST_CASE("A TimerSet that was moved from can be assigned to and used again") {
    CheckedTimers checked(TimePoint{});
    for (Id id = 0; id < 3000; ++id) checked.add(TimePoint{5s});
    {
        const auto old = std::exchange(checked.timers, {});
        REQUIRE(old.size() == 3000);
    }
    REQUIRE(checked.timers.empty());
    REQUIRE(checked.timers.check());
    CheckedTimers fresh(TimePoint{});
    fresh.timers = std::move(checked.timers);
    for (Id id = 0; id < 3000; ++id) fresh.add(TimePoint{Duration{id * 389 % 1000}});
    fresh.drain();
}

TEST_CASE("TimerSet is as it was when memory runs out in add") {
    Random random;
    CAPTURE(random.seed());
    CheckedTimers checked(TimePoint{});
    std::size_t failures = 0;
    for (int count = 0; count < 20'000; ++count) {
        const TimePoint due = random_due(random, checked.now);
        const auto next_due = checked.timers.next_due();
        const auto next_sequence = checked.timers.next_sequence();
        for (std::size_t allowed = 0; !checked.add(due, allowed); ++allowed, ++failures) {
            checked.compare();
            expect(checked.timers.next_due() == next_due, "the next due is as it was");
            expect(checked.timers.next_sequence() == next_sequence, "the next sequence is as it was");
            expect(checked.timers.check(), "check()");
        }
    }
    REQUIRE(failures >= 50);
    checked.drain();
}

TEST_CASE("TimerSet is as it was when memory runs out in reschedule") {
    Random random;
    CAPTURE(random.seed());
    for (const TimePoint at_first : {TimePoint{5s}, TimePoint{1h}}) {
        CheckedTimers checked(TimePoint{});
        for (Id id = 0; id < 20'000; ++id) checked.add(at_first);
        std::size_t failures = 0;
        for (Id id = 0; id < 20'000; ++id) {
            const TimePoint due = random.one_in(2) ? TimePoint{10h} : random_due(random, checked.now);
            for (std::size_t allowed = 0; !checked.reschedule(id, due, allowed); ++allowed, ++failures) {
                checked.compare();
                expect(checked.timers.check(), "check()");
            }
        }
        REQUIRE(failures > 0);
        checked.drain();
    }
}
