#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <tuple>
#include <utility>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "failing_allocator.hpp"
#include "queue/slot_ring_helpers.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing::slot_ring;
using std::chrono::years;
using vigil::Change;
using vigil::Delay;
using vigil::DueValue;
using vigil::Duration;
using vigil::Evicted;
using vigil::saturating_add;
using vigil::SlotRing;
using vigil::SlotRingOptions;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

/// Keeps what is in the ring, as told.
struct Mirror {
    struct Kept {
        TimePoint due;
        int value;
    };
    std::map<std::uint32_t, Kept> kept;
    std::size_t calls = 0;
    bool consistent = true;  // each is added once and removed once

    void changed(std::uint32_t slot, const DueValue<int>& item, Change change) noexcept {
        ++calls;
        consistent = consistent && change == Change::added && kept.emplace(slot, Kept{item.due, item.value}).second;
    }
    void removed(std::uint32_t slot) noexcept {
        ++calls;
        consistent = consistent && kept.erase(slot) == 1;
    }
};

}  // namespace

TEST_CASE("An observer of a SlotRing knows what is in it, and is not told of what is restored") {
    Random random;
    CAPTURE(random.seed());
    using ObservedRing = SlotRing<int, Mirror>;
    ObservedRing ring({.tick = 1s, .slots = 10});
    const Mirror& mirror = ring.observer();
    std::map<int, std::pair<ObservedRing::Handle, TimePoint>> live;
    TimePoint now{};
    for (int value = 0; value < 20'000; ++value) {
        const TimePoint due = now + Duration{random.below(100'000'000)};
        live[value] = {random.one_in(2) ? ring.put(due, int{value}) : ring.put_after(now, due - now, int{value}), due};
        if (live.size() > 300 || random.one_in(3)) {
            ring.cancel(live.begin()->second.first);
            live.erase(live.begin());
        }
        if (random.one_in(10)) now += Duration{random.below(2'000'000)};
        const bool refuses = random.one_in(4);
        ring.advance(now, 1 + random.below(30), [&](const DueValue<int>& item) {
            if (!refuses) live.erase(item.value);
            return !refuses;
        });
        expect(mirror.consistent && mirror.kept.size() == live.size(), "it knows how many there are");
        if (value % 500 != 0) continue;
        for (const auto& [slot, kept] : mirror.kept) {
            const auto found = live.find(kept.value);
            expect(found != live.end() && found->second.second == kept.due, "it knows what is there");
        }
    }
    ObservedRing restored({.tick = 1ms, .slots = 77});
    std::multimap<TimePoint, int> expected;
    std::map<std::uint32_t, Mirror::Kept> as_restored;
    for (const auto& [slot, kept] : mirror.kept) {
        expected.emplace(kept.due, kept.value);
        as_restored.emplace(static_cast<std::uint32_t>(restored.restore(kept.due, int{kept.value})), kept);
    }
    REQUIRE(restored.observer().calls == 0);
    restored.observer().kept = as_restored;
    for (const int value : advance(restored, TimePoint::max())) {
        expect(value == expected.begin()->second, "what was restored fires");
        expected.erase(expected.begin());
    }
    REQUIRE(expected.empty());
    REQUIRE(restored.observer().consistent);
    REQUIRE(restored.observer().kept.empty());
}

namespace {

using Id = std::size_t;
using Value = std::unique_ptr<Id>;
using ValueRing = SlotRing<Value>;

/// A ring beside a sorted set that holds the same; each value is its own id.
class CheckedRing {
   public:
    CheckedRing(const SlotRingOptions& options, TimePoint start) : ring(options), now(start) {}

    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] Id random_live(Random& random) const { return live_[random.below(live_.size())]; }
    [[nodiscard]] Id random_id(Random& random) const { return random.below(known_.size()); }
    [[nodiscard]] ValueRing::Handle handle(Id id) const { return known_[id].handle; }

    void put(TimePoint due) { added(due, ring.put(due, std::make_unique<Id>(known_.size()))); }
    void put_after(Delay delay) {
        added(saturating_add(now, delay.value()), ring.put_after(now, delay, std::make_unique<Id>(known_.size())));
    }
    /// False if memory ran out, and then the ring must be as it was.
    bool put(TimePoint due, std::size_t allowed_allocations) {
        auto value = std::make_unique<Id>(known_.size());
        const auto next_due = ring.next_due();
        const auto entries = ring.entries();
        ValueRing::Handle handle;
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            handle = ring.put(due, std::move(value));
        } catch (const std::bad_alloc&) {
            expect(ring.next_due() == next_due && ring.entries() == entries, "the ring is as it was");
            compare();
            return false;
        }
        added(due, handle);
        return true;
    }

    /// What is not there any more must not be found.
    void cancel(Id id) {
        const auto value = ring.cancel(handle(id));
        expect(value.has_value() == known_[id].live, "what is there, and only that, can be cancelled");
        if (!value) return;
        expect(**value == id, "the value comes back");
        forget(id);
    }
    void find(Id id) {
        const Value* value = ring.find(handle(id));
        expect((value != nullptr) == known_[id].live, "what is there, and only that, can be found");
        expect(value == nullptr || **value == id, "the right value is found");
    }

    /// `sink(id)` may change the ring, and returns whether it takes the value.
    template <class Sink>
    Evicted advance(std::size_t limit, Sink&& sink, std::size_t allowed_allocations = unlimited) {
        std::size_t taken = 0;
        bool refused = false;
        const AllocationsFailAfter limited{allowed_allocations};
        const Evicted evicted = ring.advance(now, limit, [&](const DueValue<Value>& item) {
            expect(!refused, "nothing is offered after a refusal");
            expect(fires_at(item.due, ring.tick()) <= now, "nothing is early");
            const Id id = std::get<Id>(*model_.begin());
            expect(*item.value == id && item.due == known_[id].due, "the earliest comes first");
            refused = !sink(id);
            if (refused) return false;
            expect(*item.value == id, "it stays what it is while the sink has it");
            forget(id);
            ++taken;
            return true;
        });
        expect(evicted.items == taken && taken <= limit && evicted.refused == refused, "what was done is said");
        if (!evicted.more && !refused) {
            expect(model_.empty() || fires_at(first_due(), ring.tick()) > now, "all that fires now comes out");
        }
        return evicted;
    }
    void drain() {
        now = TimePoint::max();
        while (advance(unlimited, [](Id) { return true; }).more) {
        }
        REQUIRE(ring.empty());
        REQUIRE(size() == 0);
        REQUIRE(ring.entries() == 0);
        REQUIRE(ring.check());
    }

    void compare() const {
        expect(ring.size() == size() && ring.empty() == live_.empty(), "the size");
        const auto next_due = ring.next_due();
        expect(next_due.has_value() == !live_.empty(), "there is a next due if there is any");
        expect(live_.empty() || *next_due <= fires_at(first_due(), ring.tick()), "it is not late");
    }

    ValueRing ring;
    TimePoint now;

   private:
    struct Known {
        ValueRing::Handle handle;
        TimePoint due;
        std::size_t index;  // in live_
        bool live;
    };

    [[nodiscard]] TimePoint first_due() const { return std::get<TimePoint>(*model_.begin()); }
    void added(TimePoint due, ValueRing::Handle handle) {
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

    std::vector<Known> known_;
    std::vector<Id> live_;
    std::set<std::tuple<TimePoint, Id>> model_;  // ids grow as sequences do
};

/// Past, now, in this turn, at its edges, in later turns, in years, and at the edges of time.
TimePoint random_due(Random& random, TimePoint now, const ValueRing& ring) {
    const TimePoint extremes[] = {TimePoint::min(), TimePoint{}, TimePoint::max() - 1us, TimePoint::max()};
    if (random.one_in(100)) return extremes[random.below(std::size(extremes))];
    const auto within = [&](Duration most) { return saturating_add(now, Duration{random.below(most.count())}); };
    const Duration turn = ring.tick() * static_cast<std::int64_t>(ring.slots());
    const TimePoint here = fires_at(now, ring.tick());
    const TimePoint dues[] = {
        now,
        now > TimePoint::min() + 1min ? now - Duration{random.below(60'000'000)} : now,
        within(ring.tick()),
        within(5 * ring.tick()),
        within(turn),
        within(turn),
        saturating_add(here, turn - ring.tick() + random.below(3) * 1us),
        saturating_add(here, turn * static_cast<std::int64_t>(random.below(4))),
        within(5 * turn),
        within(5 * turn),
        within(100 * turn),
        within(years{100}),
    };
    return dues[random.below(std::size(dues))];
}

/// On by a little or by some ticks, to the next due or just before it; rarely by turns and by years.
TimePoint random_step_from(Random& random, TimePoint now, const ValueRing& ring) {
    const auto next = ring.next_due();
    if (random.one_in(3) && next && *next > now && *next <= saturating_add(now, 2 * ring.tick())) {
        return random.one_in(2) ? *next : *next - 1us;
    }
    const Duration turn = ring.tick() * static_cast<std::int64_t>(ring.slots());
    const Duration most = random.one_in(1000) ? Duration{years{1}} : random.one_in(50) ? 3 * turn : 2 * ring.tick();
    return saturating_add(now, Duration{random.below(most.count())});
}

std::size_t random_limit(Random& random) {
    const std::size_t limits[] = {0, 1, 2, 13, 14, 15, 100, unlimited};
    return limits[random.below(std::size(limits))];
}

void random_change(CheckedRing& checked, Random& random, std::size_t around) {
    if (checked.size() == 0 || random.below(2 * around) >= checked.size()) {
        const TimePoint due = random_due(random, checked.now, checked.ring);
        if (random.one_in(2) && due >= checked.now && checked.now >= TimePoint{})
            return checked.put_after(due - checked.now);
        return checked.put(due);
    }
    const Id id = random.one_in(4) ? checked.random_id(random) : checked.random_live(random);
    if (random.one_in(8)) return checked.find(id);
    checked.cancel(id);
}

void random_advance(CheckedRing& checked, Random& random, std::size_t around) {
    const auto refuses_one_in = random.one_in(2) ? 4 : 1'000'000;
    const auto changes_one_in = random.one_in(2) ? 3 : 1'000'000;
    checked.advance(random_limit(random), [&](Id id) {
        expect(!checked.ring.cancel(checked.handle(id)), "a sink cannot cancel what it has");
        if (random.one_in(refuses_one_in)) return false;
        if (random.one_in(changes_one_in)) checked.put(random_due(random, checked.now, checked.ring));
        if (random.one_in(changes_one_in)) {
            const Id other = checked.random_live(random);
            if (other != id) checked.cancel(other);
        }
        return true;
    });
    if (checked.size() > 2 * around) checked.advance(unlimited, [](Id) { return true; });
}

}  // namespace

TEST_CASE("SlotRing fires everything at its tick in order of due and sequence, nothing early and nothing lost") {
    Random random;
    CAPTURE(random.seed());
    const TimePoint starts[] = {TimePoint{}, TimePoint{-10s}, TimePoint{12345h}, TimePoint::max() - 1min};
    for (const Duration tick : {Duration{1ms}, Duration{7ms}, Duration{1s}, Duration{1h}}) {
        for (const std::size_t slots : {1, 2, 3, 10, 64, 100, 3600}) {
            const TimePoint start = starts[random.one_in(2) ? 2 : random.below(4)];
            const std::size_t around = random.one_in(2) ? 50 : 1000;
            CAPTURE(tick.count(), slots, start, around);
            CheckedRing checked({.tick = tick, .slots = slots}, start);
            for (int step = 0; step < 40'000; ++step) {
                // Time goes on by fits and starts, so that what is cancelled piles up, and is cleared away while it
                // does.
                const bool stands_still = step % 20'000 < 17'000 && !random.one_in(100);
                random_change(checked, random, around);
                if (!stands_still && random.one_in(4))
                    checked.now = random_step_from(random, checked.now, checked.ring);
                if (!stands_still && random.one_in(2)) random_advance(checked, random, around);
                checked.compare();
                if (step % 2000 == 0) expect(checked.ring.check(), "check()");
            }
            checked.drain();
        }
    }
}

TEST_CASE("SlotRing is as it was when memory runs out in put") {
    Random random;
    CAPTURE(random.seed());
    CheckedRing checked({.tick = 1s, .slots = 100}, TimePoint{12345h});
    checked.advance(unlimited, [](Id) { return true; });
    std::size_t failures = 0;
    for (int count = 0; count < 10'000; ++count) {
        const TimePoint due = random_due(random, checked.now, checked.ring);
        for (std::size_t allowed = 0; !checked.put(due, allowed); ++allowed, ++failures) {
            if (failures % 20 == 0) expect(checked.ring.check(), "check()");
        }
    }
    REQUIRE(failures >= 500);
    checked.drain();
}

TEST_CASE("SlotRing loses nothing when memory runs out in advance") {
    Random random;
    CAPTURE(random.seed());
    struct Case {
        std::size_t slots;
        Duration least, most;  // half of the values are due between these
        Duration equal;        // half of them here
        Duration step;
    };
    const Case cases[] = {
        {100, 0s, 10min, 5s, 7s},   // many in one slot
        {6400, 4h, 5h, 4h, 10min},  // groups that are spread over many slots
        {10, 0s, 10h, 5h, 6h},      // groups that are due when they come into the ring
    };
    for (const auto& [slots, least, most, equal, step] : cases) {
        CAPTURE(slots);
        CheckedRing checked({.tick = 1s, .slots = slots}, TimePoint{});
        for (int count = 0; count < 10'000; ++count) {
            checked.put(TimePoint{equal});
            checked.put(TimePoint{least + Duration{random.below((most - least).count())}});
        }
        std::size_t failures = 0;
        const auto advances = [&](std::size_t allowed) {
            try {
                return checked
                    .advance(
                        50, [](Id) { return true; }, allowed)
                    .more;
            } catch (const std::bad_alloc&) {
                ++failures;
                return true;
            }
        };
        for (; checked.size() > 0; checked.now += step) {
            for (std::size_t calls = 0; advances(calls % 3); ++calls) {
                checked.compare();
                if (calls % 50 == 0) expect(checked.ring.check(), "check()");
            }
        }
        REQUIRE(failures >= 5);
        checked.drain();
    }
}
