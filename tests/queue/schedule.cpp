#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <new>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/schedule.hpp>

#include "failing_allocator.hpp"
#include "queue/random_time.hpp"

using namespace std::chrono_literals;
using vigil::Duration;
using vigil::MillisecondRing;
using vigil::saturating_add;
using vigil::Schedule;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Slot = Schedule::Slot;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

class Owner {
   public:
    [[nodiscard]] Schedule::Entry entry(Slot slot) const {
        ++asked;
        return items[slot].entry;
    }
    [[nodiscard]] TimePoint armed(Slot slot) const { return items[slot].armed; }
    void rearmed(Slot slot) {
        ++looked_at;
        items[slot].armed = items[slot].entry.due;
    }
    void moved(Slot slot, Schedule::Place place) { items[slot].place = place; }
    [[nodiscard]] Schedule::Place place(Slot slot) const { return items[slot].place; }
    void prefetch(Slot) const {}

    struct Item {
        Schedule::Entry entry;
        TimePoint armed;
        Schedule::Place place;
        std::size_t index;  // among the live ones
    };
    std::vector<Item> items;
    std::size_t looked_at = 0;
    mutable std::size_t asked = 0;
};

/// A schedule beside a sorted set that holds the same.
class CheckedSchedule {
   public:
    explicit CheckedSchedule(TimePoint start) : now(start) {}

    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] Slot random_slot(Random& random) const { return live_[random.below(size())]; }

    /// False if memory ran out.
    bool push(TimePoint due, std::size_t allowed_allocations = unlimited) {
        if (free_.empty()) {
            free_.push_back(static_cast<Slot>(owner_.items.size()));
            owner_.items.emplace_back();
        }
        const Slot slot = free_.back();
        owner_.items[slot] = {{due, next_sequence_, slot}, due, {}, live_.size()};
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            schedule.push(now, owner_.items[slot].entry, owner_);
        } catch (const std::bad_alloc&) {
            return false;
        }
        ++next_sequence_;
        free_.pop_back();
        live_.push_back(slot);
        model_.insert(owner_.items[slot].entry);
        return true;
    }

    void remove(Slot slot) {
        schedule.remove(slot, owner_);
        forget(slot);
    }

    /// Gives an entry a later due, if possible without telling the schedule.
    void rearm(Slot slot, TimePoint due) {
        auto& item = owner_.items[slot];
        if (due < item.entry.due) return;
        const bool tell = !Schedule::may_rearm(item.place);
        if (tell) schedule.remove(slot, owner_);
        expect(model_.erase(item.entry) == 1, "each entry is there once");
        item.entry.due = due;
        item.entry.sequence = next_sequence_++;
        model_.insert(item.entry);
        if (!tell) return;
        item.armed = due;
        schedule.push(now, item.entry, owner_);
    }

    /// One call of first(), its answer checked and removed. False if nothing is due.
    bool take(std::size_t limit, std::size_t allowed_allocations = unlimited) {
        const std::size_t given = limit;
        owner_.looked_at = 0;
        const auto* first = [&] {
            const AllocationsFailAfter limited{allowed_allocations};
            return schedule.first(now, limit, owner_);
        }();
        parked_before += owner_.looked_at;
        expect(given - limit >= std::min(given, owner_.looked_at), "the limit is lowered one for one");
        expect(owner_.looked_at < given - limit + MillisecondRing::chunk_size, "the limit is kept, but for a chunk");
        if (first == nullptr) {
            const bool done = model_.empty() || model_.begin()->due > now;
            expect(done || limit == 0, "what is due comes out unless the limit is used up");
            return !done;
        }
        expect(first->due <= now, "nothing is early");
        expect(same(*first, *model_.begin()), "the earliest comes first");
        remove(first->slot);
        return true;
    }

    /// Calls take() until nothing is due; gives the number of calls.
    std::size_t take_all(std::size_t limit) {
        std::size_t calls = 1;
        while (take(limit)) ++calls;
        return calls;
    }

    void compare() const {
        expect(schedule.size() == size() && schedule.empty() == live_.empty(), "the size");
        expect(schedule.entries() <= 2 * size() + 1000, "what was removed does not pile up");
        const auto next_due = schedule.next_due();
        expect(next_due.has_value() == !live_.empty(), "there is a next due if there is any");
        expect(live_.empty() || *next_due <= model_.begin()->due, "the next due is not later than any");
    }
    /// The first of each_by_due(), as many as `limit`.
    void compare_order(std::size_t limit) const {
        auto expected = model_.begin();
        schedule.each_by_due(owner_, [&](const Schedule::Entry& entry) {
            expect(expected != model_.end() && same(entry, *expected++), "each_by_due() is in order");
            return --limit > 0;
        });
        expect(limit == 0 || expected == model_.end(), "each_by_due() leaves nothing out");
    }
    [[nodiscard]] bool check() const { return schedule.check(owner_); }
    [[nodiscard]] TimePoint earliest() const { return model_.begin()->due; }
    /// How many entries the schedule asks for to know the earliest.
    std::size_t cost_of_earliest() const {
        owner_.asked = 0;
        const auto found = schedule.earliest(owner_);
        expect(found && same(*found, *model_.begin()), "the earliest is exact");
        return owner_.asked;
    }

    Schedule schedule;
    TimePoint now;
    std::size_t parked_before = 0;  // how many have come out of the ring

   private:
    static bool same(const Schedule::Entry& one, const Schedule::Entry& other) {
        return one.due == other.due && one.sequence == other.sequence && one.slot == other.slot;
    }

    void forget(Slot slot) {
        expect(model_.erase(owner_.items[slot].entry) == 1, "each entry is there once");
        const std::size_t index = owner_.items[slot].index;
        live_[index] = live_.back();
        owner_.items[live_[index]].index = index;
        live_.pop_back();
        free_.push_back(slot);
    }

    Owner owner_;
    std::uint64_t next_sequence_ = 0;
    std::vector<Slot> live_, free_;
    std::set<Schedule::Entry> model_;
};

std::size_t random_limit(Random& random) {
    const std::size_t limits[] = {0, 1, 2, 15, 16, 100, unlimited};
    return limits[random.below(7)];
}

void random_step(CheckedSchedule& checked, Random& random, std::size_t around) {
    if (random.one_in(8)) checked.now = random_step_from(random, checked.now, checked.schedule.next_due());
    if (checked.size() == 0 || random.below(2 * around) >= checked.size()) {
        checked.push(random_due(random, checked.now));
    } else if (random.one_in(3)) {
        checked.remove(checked.random_slot(random));
    } else if (random.one_in(3)) {
        checked.rearm(checked.random_slot(random), random_due(random, checked.now));
    } else {
        checked.take(random_limit(random));
    }
}

}  // namespace

TEST_CASE("Schedule gives everything in order of due and sequence, nothing early and nothing lost") {
    Random random;
    CAPTURE(random.seed());
    const TimePoint starts[] = {TimePoint{}, TimePoint{-10s}, TimePoint{12345h}, TimePoint::min(),
                                TimePoint::max() - 1min};
    for (const TimePoint start : starts) {
        for (const std::size_t around : {200, 1100, 10'000}) {
            CAPTURE(start, around);
            CheckedSchedule checked(start);
            for (int step = 0; step < 150'000; ++step) {
                random_step(checked, random, around);
                checked.compare();
                if (step % 2000 == 0) {
                    expect(checked.check(), "check()");
                    checked.compare_order(random.one_in(2) ? unlimited : 1 + random.below(100));
                }
            }
            checked.now = TimePoint::max();
            checked.take_all(1 + random_limit(random) / 2);
            REQUIRE(checked.schedule.empty());
            REQUIRE(checked.check());
        }
    }
}

TEST_CASE("Schedule knows the next due exactly as long as nothing is removed before its time") {
    Random random;
    CAPTURE(random.seed());
    CheckedSchedule checked(TimePoint{});
    for (int step = 0; step < 200'000; ++step) {
        if (checked.size() < 5000) checked.push(random_due(random, checked.now));
        if (random.one_in(8)) checked.now = random_step_from(random, checked.now, checked.schedule.next_due());
        checked.take_all(1 + random_limit(random) / 2);
        expect(checked.size() == 0 || checked.schedule.next_due() == checked.earliest(), "the next due is exact");
    }
}

TEST_CASE("Schedule keeps equal dues in their order, however many there are") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 5000; ++count) checked.push(TimePoint{5s});
    checked.now = TimePoint{5s} - 1us;
    REQUIRE_FALSE(checked.take(unlimited));
    checked.now = TimePoint{5s};
    checked.take_all(unlimited);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule called again and again gets through any bucket, whatever the limit") {
    for (const std::size_t limit : {1, 7, 15, 16, 1000}) {
        CheckedSchedule checked(TimePoint{});
        for (int count = 0; count < 10'000; ++count) checked.push(TimePoint{5s + Duration{count % 3}});
        checked.now = TimePoint{6s};
        REQUIRE(checked.take_all(limit) <= 2 * 10'000);
        REQUIRE(checked.schedule.empty());
    }
}

TEST_CASE("Schedule given no limit at all still gives what is in order already") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 10; ++count) checked.push(TimePoint{1us});
    checked.now = TimePoint{1us};
    for (int count = 0; count < 10; ++count) checked.take(0);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule puts a million re-armed entries where they belong, in pieces, and none of them early") {
    CheckedSchedule checked(TimePoint{});
    constexpr Slot count = 1'000'000;
    for (Slot pushed = 0; pushed < count; ++pushed) checked.push(TimePoint{5s});
    for (Slot slot = 0; slot < count; ++slot) checked.rearm(slot, TimePoint{10s});
    checked.now = TimePoint{6s};
    for (std::size_t calls = 0; checked.schedule.next_due() <= checked.now; ++calls) {
        REQUIRE(calls <= count / 100);
        checked.take(100);
    }
    REQUIRE(checked.size() == count);
    REQUIRE(checked.schedule.next_due() == TimePoint{10s});
    checked.now = TimePoint{10s};
    checked.take_all(unlimited);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule moves what is due in hours from ring to ring, and gives it in order") {
    Random random;
    CAPTURE(random.seed());
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 50'000; ++count) checked.push(TimePoint{Duration{random.below(Duration{5h}.count())}});
    REQUIRE(checked.check());
    while (checked.size() > 0) {
        checked.now = *checked.schedule.next_due() + Duration{random.below(30'000'000)};
        checked.take_all(1 + random_limit(random) / 2);
        checked.compare();
    }
    REQUIRE(checked.parked_before > 90'000);
}

TEST_CASE("Schedule forgets what is removed when its time has come already") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 100'000; ++count) checked.push(TimePoint{5s});
    checked.now = TimePoint{5s};
    while (checked.take(100) && checked.size() > 99'999) continue;
    for (Slot slot = 99'999; slot > 1; --slot) {
        checked.remove(slot);
        checked.compare();
    }
    REQUIRE(checked.check());
    checked.take_all(10);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule takes what is pushed into a bucket that is half taken out") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 3000; ++count) checked.push(TimePoint{5s + Duration{count % 100}});
    checked.now = TimePoint{6s};
    for (int pushed = 0; checked.take(1); ++pushed) {
        if (pushed < 2000) checked.push(TimePoint{5s + Duration{pushed * 7 % 150}});
        checked.compare();
    }
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule parks nothing while there is little, and needs no memory for a ring then") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 1000; ++count) checked.push(TimePoint{5s});
    REQUIRE(checked.schedule.bytes() < 100'000);
}

TEST_CASE("Schedule parks what is due soon, after a long time too") {
    CheckedSchedule checked(TimePoint{});
    for (std::size_t round = 1; round <= 3; ++round) {
        for (int count = 0; count < 5000; ++count) checked.push(checked.now + 10s);
        checked.now += 11s;
        checked.take_all(unlimited);
        REQUIRE(checked.schedule.empty());
        REQUIRE(checked.parked_before > round * 3000);
        checked.now += 1h;
    }
}

TEST_CASE("Schedule is as it was when memory runs out in push") {
    Random random;
    CAPTURE(random.seed());
    CheckedSchedule checked(TimePoint{});
    std::size_t failures = 0;
    for (int count = 0; count < 20'000; ++count) {
        const TimePoint due = random_due(random, checked.now);
        const auto next_due = checked.schedule.next_due();
        for (std::size_t allowed = 0; !checked.push(due, allowed); ++allowed, ++failures) {
            checked.compare();
            expect(checked.schedule.next_due() == next_due, "the next due is as it was");
            expect(checked.check(), "check()");
        }
    }
    REQUIRE(failures >= 50);
    checked.now = TimePoint::max();
    checked.take_all(unlimited);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE("Schedule loses nothing when memory runs out in first") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 10'000; ++count) checked.push(TimePoint{5s + Duration{count * 389 % 1000}});
    checked.now = TimePoint{6s};
    std::size_t failures = 0;
    const auto takes = [&](std::size_t allowed) {
        try {
            return checked.take(unlimited, allowed);
        } catch (const std::bad_alloc&) {
            ++failures;
            return true;
        }
    };
    for (std::size_t calls = 0; takes(calls % 2); ++calls) {
        checked.compare();
        if (calls < 100) expect(checked.check(), "check()");
    }
    REQUIRE(failures >= 10);
    REQUIRE(checked.schedule.empty());
}

TEST_CASE(
    "Schedule loses nothing when memory runs out as what is due in the first millisecond of a wide bucket moves") {
    for (const TimePoint start : {TimePoint{Duration{60LL << 20}}, TimePoint{Duration{3LL << 30}}}) {
        CAPTURE(start);
        std::size_t failures = 0;
        for (bool failed = true; failed; ++failures) {
            CheckedSchedule checked(TimePoint{});
            for (int count = 0; count < 1024; ++count) checked.push(start + 40s + Duration{count});
            checked.push(start);
            checked.now = start;
            try {
                checked.take(unlimited, failures);
                failed = false;
            } catch (const std::bad_alloc&) {
                expect(checked.check(), "check()");
            }
            checked.now += 1h;
            checked.take_all(unlimited);
            expect(checked.schedule.empty() && checked.size() == 0, "nothing is lost");
        }
        REQUIRE(failures >= 3);
    }
}

TEST_CASE("Schedule knows the earliest at once if it is on top of the heap, or the first of an opened bucket") {
    CheckedSchedule checked(TimePoint{});
    for (int count = 0; count < 1024; ++count) checked.push(TimePoint{10s + Duration{count % 10}});  // in the heap
    for (int count = 0; count < 5000; ++count) checked.push(TimePoint{10s + Duration{100 + count % 200}});
    checked.now = TimePoint{10s};
    REQUIRE(checked.take(unlimited));  // opens the bucket that holds them all
    REQUIRE(checked.parked_before >= 5000);
    REQUIRE(checked.cost_of_earliest() < 100);
    checked.now = TimePoint{10s + 50us};
    checked.take_all(unlimited);
    REQUIRE(checked.size() == 5000);
    REQUIRE(checked.cost_of_earliest() < 100);
}
