#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
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

using Ring = SlotRing<int>;
using Values = std::vector<int>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr auto take_all = [](const auto&) {};

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// What fires when time goes on to `now`.
template <class AnyRing>
Values advance(AnyRing& ring, TimePoint now, std::size_t limit = unlimited) {
    Values fired;
    const Evicted evicted = ring.advance(now, limit, [&](const DueValue<int>& item) { fired.push_back(item.value); });
    expect(evicted.items == fired.size() && !evicted.refused, "what fires is counted");
    expect(ring.check(), "check()");
    return fired;
}

/// The first tick that is not before `due`.
TimePoint fires_at(TimePoint due, Duration tick) {
    const Duration over = due.time_since_epoch() % tick;
    return over > Duration::zero() ? saturating_add(due, tick - over) : due - over;
}

Values zero_to(int end) {
    Values values;
    for (int value = 0; value < end; ++value) values.push_back(value);
    return values;
}

/// Cancels enough that the ring must clear away what is cancelled: the next cancel() goes on with that.
void cancel_many(Ring& ring, TimePoint due) {
    std::vector<Ring::Handle> handles;
    for (int count = 0; count < 5000; ++count) handles.push_back(ring.put(due, -1));
    for (const auto handle : handles) ring.cancel(handle);
}

}  // namespace

TEST_CASE("SlotRing at slot 310 puts what is 179 ahead into slot 489, and fires it there") {
    Ring ring;
    REQUIRE(ring.slots() == 3600);
    REQUIRE(ring.tick() == 1s);
    const TimePoint now{5min + 10s};
    REQUIRE(advance(ring, now).empty());
    REQUIRE(ring.slot_of(now) == 310);
    ring.put_after(now, 179s, 7);
    REQUIRE(ring.slot_of(now + 179s) == 489);
    REQUIRE(ring.next_due() == TimePoint{489s});
    REQUIRE(advance(ring, TimePoint{489s} - 1us).empty());
    REQUIRE(advance(ring, TimePoint{489s}) == Values{7});
}

TEST_CASE("SlotRing keeps a value for as many turns as its delay needs") {
    Ring ring;
    const TimePoint start{59min + 59s};
    REQUIRE(advance(ring, start).empty());
    const Duration delays[] = {1s, 1h - 1s, 1h, 1h + 1s, 2h + 1s, 2h + 59min, 100h + 1s, years{3} + 1s};
    int value = 0;
    for (const Duration delay : delays) ring.put_after(start, delay, value++);
    REQUIRE(ring.slot_of(start + 2h + 1s) == 0);
    value = 0;
    for (const Duration delay : delays) {
        REQUIRE(advance(ring, start + delay - 1us).empty());
        REQUIRE(advance(ring, start + delay) == Values{value++});
    }
    REQUIRE(ring.empty());
}

TEST_CASE("A slot follows from the due alone, before time zero too") {
    const Ring ring({.tick = 10ms, .slots = 7});
    REQUIRE(ring.slot_of(TimePoint{}) == 0);
    REQUIRE(ring.slot_of(TimePoint{1us}) == 1);
    REQUIRE(ring.slot_of(TimePoint{10ms}) == 1);
    REQUIRE(ring.slot_of(TimePoint{60ms + 1us}) == 0);
    REQUIRE(ring.slot_of(TimePoint{70ms}) == 0);
    REQUIRE(ring.slot_of(TimePoint{-1us}) == 0);
    REQUIRE(ring.slot_of(TimePoint{-10ms}) == 6);
    REQUIRE(ring.slot_of(TimePoint{-80ms}) == 6);
}

TEST_CASE("SlotRing fires at the first tick that is not before the due, at no microsecond before") {
    for (std::int64_t due = 900; due <= 2100; due = due == 1100 ? 1900 : due + 1) {
        CAPTURE(due);
        Ring ring({.tick = 1ms, .slots = 2});
        ring.put(TimePoint{Duration{due}}, 7);
        const TimePoint tick = fires_at(TimePoint{Duration{due}}, 1ms);
        expect(ring.next_due() <= tick, "the next due is not late");
        for (TimePoint now{500us}; now < tick; now += 1us) {
            expect(ring.advance(now, 10, take_all).items == 0, "nothing is early");
        }
        expect(ring.next_due() == tick, "the next due is the tick");
        expect(advance(ring, tick) == Values{7}, "it fires at its tick");
    }
}

TEST_CASE("SlotRing fires the values of a slot by due, equal ones in the order in which they were put") {
    Ring ring;
    const TimePoint dues[] = {TimePoint{4s + 1us}, TimePoint{5s},       TimePoint{4500ms},  TimePoint{4500ms},
                              TimePoint{5s},       TimePoint{4s + 2us}, TimePoint{4s + 1us}};
    for (int value = 0; value < 7; ++value) ring.put(dues[value], int{value});
    REQUIRE(advance(ring, TimePoint{4999ms}).empty());
    REQUIRE(advance(ring, TimePoint{5s}) == Values{0, 6, 5, 2, 3, 1, 4});
}

TEST_CASE("SlotRing keeps the order of a slot that holds thousands, put forwards, backwards and equal") {
    for (const int step : {1, -1, 0, 389}) {
        CAPTURE(step);
        Ring ring;
        std::multimap<TimePoint, int> expected;
        for (int value = 0; value < 5000; ++value) {
            const TimePoint due{9500ms + Duration{step * value % 5000}};
            ring.put(due, int{value});
            expected.emplace(due, value);
        }
        Values in_order;
        for (const auto& [due, value] : expected) in_order.push_back(value);
        REQUIRE(advance(ring, TimePoint{10s}) == in_order);
    }
}

TEST_CASE("SlotRing gives all that it missed, in order, however long it was away") {
    Random random;
    CAPTURE(random.seed());
    for (const Duration away : {Duration{100s}, Duration{1h}, Duration{30h}, Duration{years{50}}}) {
        Ring ring({.tick = 1s, .slots = 100});
        std::multimap<TimePoint, int> expected;
        for (int value = 0; value < 3000; ++value) {
            const TimePoint due{Duration{random.below(away.count())}};
            ring.put(due, int{value});
            expected.emplace(due, value);
        }
        Values in_order;
        for (const auto& [due, value] : expected) in_order.push_back(value);
        REQUIRE(advance(ring, TimePoint{away + 1s}) == in_order);
        REQUIRE(ring.empty());
        ring.put_after(TimePoint{away + 1s}, 5s, 7);
        REQUIRE(advance(ring, TimePoint{away + 10s}) == Values{7});
    }
}

TEST_CASE("SlotRing wraps at every slot: what is put at any position fires at its tick") {
    for (const int slots : {1, 2, 3, 64, 65, 3600}) {
        CAPTURE(slots);
        const int apart = slots > 100 ? 61 : 1;
        Ring ring({.tick = 1ms, .slots = static_cast<std::size_t>(slots)});
        for (int start = 0; start < slots; ++start) {
            const TimePoint now{1ms * (3 * slots * start + start)};
            expect(ring.advance(now, unlimited, take_all).items == 0, "all before has fired");
            int next = start % apart;
            for (int ahead = next; ahead <= 2 * slots; ahead += apart) ring.put(now + ahead * 1ms, int{ahead});
            while (!ring.empty()) {
                const TimePoint tick = *ring.next_due();
                expect(tick <= now + next * 1ms, "the next due is not late");
                ring.advance(tick, unlimited, [&](const DueValue<int>& item) {
                    expect(item.value == next && item.due == tick, "each fires at its tick");
                    next += apart;
                });
                expect(ring.empty() || *ring.next_due() > tick, "each call gets on");
            }
            expect(next > 2 * slots, "all fire");
        }
        expect(ring.check(), "check()");
    }
}

TEST_CASE("cancel() gives the value back once, and it does not fire") {
    Ring ring;
    const auto cancelled = ring.put(TimePoint{5s}, 1);
    ring.put(TimePoint{5s}, 2);
    const auto far = ring.put(TimePoint{50h}, 3);
    const auto past = ring.put(TimePoint{-1s}, 4);
    for (const auto& [handle, value] : {std::pair{cancelled, 1}, std::pair{far, 3}, std::pair{past, 4}}) {
        REQUIRE(*ring.find(handle) == value);
        REQUIRE(ring.cancel(handle) == value);
        REQUIRE(ring.find(handle) == nullptr);
        REQUIRE_FALSE(ring.cancel(handle));
        REQUIRE(ring.check());
    }
    REQUIRE(ring.size() == 1);
    REQUIRE(advance(ring, TimePoint{100h}) == Values{2});
}

TEST_CASE("A handle is good for one value only, though its place is used again") {
    Ring ring;
    const auto cancelled = ring.put(TimePoint{5s}, 1);
    ring.cancel(cancelled);
    const auto fired = ring.put(TimePoint{5s}, 2);
    REQUIRE_FALSE(ring.cancel(cancelled));
    REQUIRE(advance(ring, TimePoint{5s}) == Values{2});
    const auto last = ring.put(TimePoint{9s}, 3);
    for (const auto handle : {cancelled, fired}) {
        REQUIRE_FALSE(ring.cancel(handle));
        REQUIRE(ring.find(handle) == nullptr);
    }
    REQUIRE(ring.cancel(last) == 3);
    REQUIRE(std::set{cancelled, fired, last}.size() == 3);
}

TEST_CASE("Handle 0, and one that the ring never gave, do nothing") {
    Ring ring;
    for (int count = 0; count < 3; ++count) {
        for (const std::uint64_t never_given : {std::uint64_t{0}, std::uint64_t{77}, ~std::uint64_t{0}}) {
            REQUIRE_FALSE(ring.cancel(Ring::Handle{never_given}));
            REQUIRE(ring.find(Ring::Handle{never_given}) == nullptr);
        }
        const auto handle = ring.put(TimePoint{1s}, 7);
        REQUIRE(handle != Ring::Handle{});
        REQUIRE_FALSE(ring.cancel(Ring::Handle{static_cast<std::uint64_t>(handle) + (std::uint64_t{1} << 32)}));
    }
    // One that will be given later.
    const auto handle = ring.put(TimePoint{1s}, 8);
    REQUIRE(ring.cancel(handle) == 8);
    REQUIRE_FALSE(ring.cancel(Ring::Handle{static_cast<std::uint64_t>(handle) + (std::uint64_t{1} << 32)}));
    REQUIRE(ring.size() == 3);
    REQUIRE(ring.check());
}

TEST_CASE("SlotRing never gives the same handle twice") {
    Ring ring;
    std::set<Ring::Handle> handles;
    for (int count = 0; count < 50'000; ++count) {
        const auto handle = ring.put(TimePoint{1ms * (count % 977)}, int{count});
        expect(handles.insert(handle).second, "a handle is new");
        if (count % 5 != 0) expect(ring.cancel(handle) == count, "and good");
    }
    REQUIRE(ring.size() == 10'000);
}

TEST_CASE("The value that SlotRing::find() gives can be changed in its place") {
    Ring ring;
    *ring.find(ring.put(TimePoint{1s}, 7)) = 8;
    REQUIRE(advance(ring, TimePoint{1s}) == Values{8});
}

TEST_CASE("SlotRing keeps no value that was cancelled, has fired, or that it was destroyed with") {
    using Shared = std::shared_ptr<int>;
    const Shared value = std::make_shared<int>(7);
    {
        SlotRing<Shared> ring;
        const auto cancelled = ring.put(TimePoint{5s}, Shared(value));
        const auto far = ring.put(TimePoint{5h}, Shared(value));
        ring.put(TimePoint{4s}, Shared(value));
        ring.put(TimePoint{4s}, Shared(value));
        ring.put(TimePoint{9s}, Shared(value));
        REQUIRE(value.use_count() == 6);
        REQUIRE(ring.cancel(cancelled) == value);
        REQUIRE(value.use_count() == 5);
        REQUIRE(ring.cancel(far) == value);
        REQUIRE(value.use_count() == 4);
        ring.advance(TimePoint{4s}, 15, take_all);
        REQUIRE(value.use_count() == 2);
        ring.advance(TimePoint{9s}, 1, take_all);
        Shared taken;
        ring.advance(TimePoint{9s}, 15, [&](const DueValue<Shared>& item) { taken = std::move(item.value); });
        REQUIRE(taken == value);
        REQUIRE(value.use_count() == 2);
        ring.put(TimePoint{12s}, std::move(taken));
        REQUIRE(value.use_count() == 2);
    }
    REQUIRE(value.use_count() == 1);
}

TEST_CASE("A value may cancel its own handle and put others when it is destroyed after it fired") {
    struct Connection {
        SlotRing<std::shared_ptr<Connection>>& ring;
        SlotRing<std::shared_ptr<Connection>>::Handle timer{};
        bool puts;
        Connection(SlotRing<std::shared_ptr<Connection>>& in, bool puts_others) : ring(in), puts(puts_others) {}
        ~Connection() {
            ring.cancel(timer);
            if (puts) ring.put(TimePoint{5s}, nullptr);
        }
    };
    SlotRing<std::shared_ptr<Connection>> ring;
    for (const bool puts : {false, true}) {
        for (int count = 0; count < 3; ++count) {
            auto connection = std::make_shared<Connection>(ring, puts);
            Connection& kept = *connection;
            kept.timer = ring.put(TimePoint{2s}, std::move(connection));
        }
    }
    REQUIRE(ring.advance(TimePoint{2s}, unlimited, take_all).items == 6);
    REQUIRE(ring.size() == 3);
    REQUIRE(ring.check());
    REQUIRE(ring.advance(TimePoint{5s}, unlimited, take_all).items == 3);
    REQUIRE(ring.check());
}

TEST_CASE("SlotRing needs little memory for timers that are put and cancelled for ever, wherever they are due") {
    Random random;
    CAPTURE(random.seed());
    struct Case {
        Duration tick;
        std::size_t slots;
        Duration nearest, farthest;
        int count;
    };
    const Case cases[] = {
        {1s, 3600, 2h, 24h, 10'000'000},     // groups that many share
        {1s, 3600, 1s, 30min, 1'000'000},    // slots
        {1s, 3600, 1s, 3h, 1'000'000},       // both
        {1ms, 64, 1h, years{1}, 1'000'000},  // each in a group of its own
    };
    for (const auto& [tick, slots, nearest, farthest, count] : cases) {
        CAPTURE(tick.count(), slots, nearest.count(), farthest.count());
        Ring ring({.tick = tick, .slots = slots});
        const auto random_due = [&, within = (farthest - nearest).count(), nearest = nearest] {
            return TimePoint{nearest + Duration{random.below(within)}};
        };
        std::vector<Ring::Handle> live;
        for (int value = 0; value < 1000; ++value) live.push_back(ring.put(random_due(), int{value}));
        for (int step = 0; step < count; ++step) {
            const auto value = static_cast<std::size_t>(step) % live.size();
            expect(ring.cancel(live[value]) == static_cast<int>(value), "what is live can be cancelled");
            live[value] = ring.put(random_due(), static_cast<int>(value));
            expect(ring.entries() <= 3 * ring.size() + 10'000, "what is cancelled is cleared away");
        }
        REQUIRE(ring.bytes() < 2'000'000);
        REQUIRE(advance(ring, TimePoint{farthest}).size() == 1000);
        REQUIRE(ring.entries() == 0);
    }
}

TEST_CASE("SlotRing needs little memory for what is due but refused, and cancelled for ever") {
    Ring ring;
    ring.put(TimePoint{1s}, 0);
    const auto refuse = [](const DueValue<int>&) { return false; };
    expect(ring.advance(TimePoint{3s}, 100, refuse).refused, "nobody takes anything");
    std::vector<Ring::Handle> live;
    for (int value = 1; value < 100; ++value) live.push_back(ring.put(TimePoint{1s}, int{value}));
    for (std::size_t step = 0; step < 100'000; ++step) {
        auto& handle = live[step % live.size()];
        const auto before = std::exchange(handle, ring.put(TimePoint{1s}, static_cast<int>(1 + step % live.size())));
        expect(ring.cancel(before).has_value(), "it can be cancelled");
        expect(ring.advance(TimePoint{3s}, 100, refuse).refused, "nobody takes anything");
        expect(ring.entries() <= 3 * ring.size() + 10'000, "what is cancelled is cleared away");
        if (step % 1000 == 0) expect(ring.check(), "check()");
    }
    Values fired = advance(ring, TimePoint{3s});
    REQUIRE(fired.front() == 0);
    std::sort(fired.begin(), fired.end());
    REQUIRE(fired == zero_to(100));
}

TEST_CASE("SlotRing loses nothing that is put into a slot from which it has cleared away what was cancelled") {
    Ring ring({.tick = 1s, .slots = 10});
    std::vector<Ring::Handle> handles{ring.put(TimePoint{2s}, -1)};
    for (int count = 0; count < 4096; ++count) handles.push_back(ring.put(TimePoint{9s}, -1));
    for (const auto handle : handles) ring.cancel(handle);
    REQUIRE(ring.entries() == 4096);  // slot 2 was cleared
    REQUIRE(advance(ring, TimePoint{5s}).empty());
    for (int value = 0; value < 14; ++value) ring.put(TimePoint{12s}, int{value});  // slot 2, a turn later
    for (int count = 0; count < 20; ++count) ring.cancel(ring.put(TimePoint{9s}, -1));
    REQUIRE(ring.check());
    REQUIRE(advance(ring, TimePoint{12s}) == zero_to(14));
}

TEST_CASE("SlotRing goes on clearing away after a group of later turns is gone") {
    Ring ring({.tick = 1s, .slots = 10});
    std::vector<Ring::Handle> handles;
    for (int count = 0; count < 10'000; ++count) handles.push_back(ring.put(TimePoint{100s + 1s * count}, -1));
    for (std::size_t index = 0; index < handles.size(); ++index) {
        expect(ring.cancel(handles[index]) == -1, "what is live can be cancelled");
        if (index % 100 == 0) ring.put(TimePoint{100s + 10ms * index}, static_cast<int>(index / 100));
        if (index % 100 == 0) expect(ring.check(), "check()");
    }
    REQUIRE(advance(ring, TimePoint{100h}) == zero_to(100));
}

TEST_CASE("SlotRing with nothing in it has no next due, though it has been used") {
    Ring ring;
    REQUIRE_FALSE(ring.next_due());
    const auto handle = ring.put(TimePoint{5h}, 1);
    REQUIRE(ring.next_due());
    ring.cancel(handle);
    REQUIRE_FALSE(ring.next_due());
    ring.put(TimePoint{7s}, 2);
    REQUIRE(advance(ring, TimePoint{7s}) == Values{2});
    REQUIRE_FALSE(ring.next_due());
    REQUIRE(ring.entries() == 1);  // the cancelled one
    REQUIRE(advance(ring, TimePoint{5h}).empty());
    REQUIRE(ring.entries() == 0);
}

TEST_CASE("A driver that wakes at the next due wakes once for a tick, and seldom for nothing") {
    Random random;
    CAPTURE(random.seed());
    Ring ring;
    std::set<TimePoint> ticks;
    TimePoint now{12345h};
    for (int value = 0; value < 1000; ++value) {
        const TimePoint due = now + Duration{random.below(Duration{24h}.count())};
        ring.put(due, int{value});
        ticks.insert(fires_at(due, ring.tick()));
    }
    std::size_t wakes = 0, for_nothing = 0;
    while (const auto next = ring.next_due()) {
        expect(wakes == 0 || *next > now, "it gets on");
        now = std::max(now, *next);
        ++wakes;
        if (ring.advance(now, unlimited, take_all).items == 0) ++for_nothing;
    }
    REQUIRE(wakes == ticks.size() + for_nothing);
    REQUIRE(for_nothing < 50);
}

TEST_CASE("What is put into the past fires next, in order") {
    Ring ring;
    REQUIRE(advance(ring, TimePoint{1000s}).empty());
    ring.put(TimePoint{999s}, 3);
    ring.put(TimePoint{1000s}, 4);
    ring.put(TimePoint{1001s}, 6);
    ring.put(TimePoint{5s}, 2);
    ring.put(TimePoint{-5s}, 0);
    ring.put(TimePoint{-5s}, 1);
    ring.put(TimePoint{1000s}, 5);
    REQUIRE(*ring.next_due() <= TimePoint{1000s});
    REQUIRE(advance(ring, TimePoint{1000s}) == zero_to(6));
    REQUIRE(advance(ring, TimePoint{1001s}) == Values{6});
}

TEST_CASE("SlotRing keeps to the order at the beginning and the end of time") {
    for (const Duration tick : {Duration{1ms}, Duration{7ms}, Duration{1s}, Duration{1h}}) {
        CAPTURE(tick.count());
        Ring ring({.tick = tick, .slots = 10});
        ring.put(TimePoint::max(), 4);
        ring.put(TimePoint::max() - 1us, 3);
        ring.put(TimePoint::max() - tick, 2);
        ring.put(TimePoint::min() + 1us, 1);
        ring.put(TimePoint::min(), 0);
        ring.put(TimePoint::max(), 5);
        REQUIRE(ring.check());
        REQUIRE(advance(ring, TimePoint::min()).empty());  // no tick is there
        REQUIRE(*ring.next_due() < TimePoint::min() + tick);
        REQUIRE(advance(ring, TimePoint::min() + tick) == zero_to(2));
        REQUIRE(*ring.next_due() <= fires_at(TimePoint::max() - tick, tick));
        REQUIRE(advance(ring, TimePoint::max() - tick - 1us).empty());
        REQUIRE(advance(ring, TimePoint::max()) == Values{2, 3, 4, 5});
        ring.put(TimePoint::max(), 6);
        ring.put_after(TimePoint::max(), Duration::max(), 7);
        ring.put_after(TimePoint::max(), 0s, 8);
        REQUIRE(advance(ring, TimePoint::max()) == Values{6, 7, 8});
    }
}

TEST_CASE("SlotRing takes delays of years, fractions, and negative ones as none") {
    Ring ring;
    const TimePoint now{12345h};
    ring.put_after(now, years{1000}, 4);
    ring.put_after(now, years{5}, 3);
    ring.put_after(now, -5s, 0);
    ring.put_after(now, Duration::min(), 1);
    ring.put_after(now, std::chrono::duration<double>{0.25}, 2);
    ring.put_after(now, std::chrono::hours::max(), 5);
    REQUIRE(advance(ring, now) == Values{0, 1});
    REQUIRE(advance(ring, now + 1s) == Values{2});
    REQUIRE(advance(ring, now + years{5} - 1us).empty());
    REQUIRE(advance(ring, now + years{5} + 1s) == Values{3});
    REQUIRE(advance(ring, now + years{1000} + 1s) == Values{4});
    REQUIRE(advance(ring, TimePoint::max()) == Values{5});
}

TEST_CASE("SlotRing refuses a tick of less than a millisecond, and to have no slots") {
    REQUIRE_THROWS_AS(Ring({.tick = 999us}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.tick = 0us}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.tick = -1s}), std::invalid_argument);
    REQUIRE_THROWS_AS(Ring({.slots = 0}), std::invalid_argument);
    REQUIRE_NOTHROW(Ring({.tick = 1ms, .slots = 1}));
}

TEST_CASE("SlotRing stops at the limit and goes on where it stopped") {
    for (const std::size_t limit : {1, 2, 13, 14, 15, 100, 10'000}) {
        CAPTURE(limit);
        Ring ring({.tick = 1s, .slots = 10});
        int value = 0;
        for (const Duration due : {3s, 9s, 300s}) {
            for (int count = 0; count < 500; ++count) ring.put(TimePoint{due}, value++);
        }
        Values fired;
        std::size_t calls = 0;
        for (bool more = true; more; ++calls) {
            const Evicted evicted =
                ring.advance(TimePoint{400s}, limit, [&](const DueValue<int>& item) { fired.push_back(item.value); });
            expect(evicted.items <= limit, "the limit is kept");
            more = evicted.more;
            expect(more || ring.empty(), "there is more as long as anything is due");
            expect(ring.check(), "check()");
        }
        REQUIRE(fired == zero_to(1500));
        REQUIRE(calls <= 2 + 4 * 1500 / limit);
    }
}

TEST_CASE("SlotRing asked for nothing does nothing") {
    Ring ring;
    ring.put(TimePoint{1s}, 7);
    const Evicted evicted = ring.advance(TimePoint{5s}, 0, take_all);
    REQUIRE(evicted.items == 0);
    REQUIRE(evicted.more);
    REQUIRE(advance(ring, TimePoint{5s}) == Values{7});
}

TEST_CASE("SlotRing takes what is put into a slot that it has put in order by half") {
    Ring ring;
    for (int value = 0; value < 100; ++value) ring.put(TimePoint{5s}, 100 + value);
    REQUIRE(advance(ring, TimePoint{5s}, 20).empty());
    ring.put(TimePoint{5s}, 200);
    ring.put(TimePoint{4s}, 99);
    ring.put(TimePoint{6s}, 201);
    const auto cancelled = ring.put(TimePoint{5s}, -1);
    REQUIRE(ring.next_due() <= TimePoint{5s});
    REQUIRE(advance(ring, TimePoint{5s}, 20).empty());
    ring.cancel(cancelled);
    Values expected;
    for (int value = 99; value <= 200; ++value) expected.push_back(value);
    REQUIRE(advance(ring, TimePoint{5s}) == expected);
    REQUIRE(advance(ring, TimePoint{6s}) == Values{201});
}

TEST_CASE("SlotRing fires what is left of a slot that it has put in order by half when the rest is cancelled") {
    Ring ring;
    std::vector<Ring::Handle> handles;
    for (int value = 0; value < 20; ++value) handles.push_back(ring.put(TimePoint{5s}, int{value}));
    for (int count = 0; count < 5000; ++count) handles.push_back(ring.put(TimePoint{50s}, -1));
    REQUIRE(advance(ring, TimePoint{5s}, 10).empty());
    for (std::size_t value = 10; value < handles.size(); ++value) ring.cancel(handles[value]);
    REQUIRE(ring.next_due() <= TimePoint{5s});
    REQUIRE(advance(ring, TimePoint{5s}) == zero_to(10));
}

TEST_CASE("SlotRing knows exactly when something is due in this turn, advanced or idle") {
    const TimePoint now{12345h};
    for (const Duration delay : {1s, 2s, 100s, 3599s}) {
        Ring advanced, idle;
        REQUIRE(advance(advanced, now).empty());
        advanced.put(now + delay, 7);
        REQUIRE(advanced.next_due() == now + delay);
        idle.put_after(now, delay, 7);
        REQUIRE(idle.next_due() == now + delay);
    }
}

TEST_CASE("SlotRing moves a group of a later turn into the ring in pieces of the limit") {
    Ring ring;
    for (int value = 0; value < 1400; ++value) ring.put(TimePoint{2h + 10ms * value}, int{value});
    int calls = 1;
    while (ring.advance(TimePoint{90min}, 14, take_all).more) ++calls;
    REQUIRE(calls >= 100);
    REQUIRE(ring.next_due() == TimePoint{2h});
    REQUIRE(advance(ring, TimePoint{3h}) == zero_to(1400));
}

TEST_CASE("What a sink refuses stays, and is the first one again") {
    Ring ring;
    for (int value = 0; value < 5; ++value) ring.put(TimePoint{5s}, int{value});
    const auto refused = ring.put(TimePoint{5s}, 5);
    Values offered;
    const auto take_two = [&](const DueValue<int>& item) {
        offered.push_back(item.value);
        return offered.size() <= 2;
    };
    const Evicted evicted = ring.advance(TimePoint{5s}, unlimited, take_two);
    REQUIRE(evicted.items == 2);
    REQUIRE(evicted.refused);
    REQUIRE_FALSE(evicted.more);
    REQUIRE(offered == zero_to(3));
    REQUIRE(ring.size() == 4);
    REQUIRE(ring.next_due() <= TimePoint{5s});
    REQUIRE(ring.check());
    REQUIRE(ring.cancel(refused) == 5);
    REQUIRE(advance(ring, TimePoint{9s}) == Values{2, 3, 4});
}

TEST_CASE("A refused value can still be cancelled") {
    Ring ring;
    const auto handle = ring.put(TimePoint{5s}, 7);
    ring.put(TimePoint{5s}, 8);
    REQUIRE(ring.advance(TimePoint{5s}, 10, [](const DueValue<int>&) { return false; }).refused);
    REQUIRE(ring.cancel(handle) == 7);
    REQUIRE(advance(ring, TimePoint{5s}) == Values{8});
}

TEST_CASE("What a sink throws comes through, and the value stays") {
    Ring ring;
    const auto handle = ring.put(TimePoint{5s}, 0);
    ring.put(TimePoint{5s}, 1);
    for (int count = 0; count < 2; ++count) {
        REQUIRE_THROWS_AS(ring.advance(TimePoint{5s}, 10, [](const DueValue<int>&) { throw std::logic_error("no"); }),
                          std::logic_error);
        REQUIRE(ring.size() == 2);
        REQUIRE(*ring.find(handle) == 0);
        REQUIRE(ring.check());
    }
    REQUIRE(advance(ring, TimePoint{5s}) == zero_to(2));
}

TEST_CASE("A sink that cancels what it is given finds it gone, and may cancel and put others") {
    Ring ring;
    std::vector<Ring::Handle> handles;
    for (int value = 0; value < 10; ++value) handles.push_back(ring.put(TimePoint{5s + 1us * value}, int{value}));
    handles.push_back(ring.put(TimePoint{20s}, 10));
    Values fired;
    ring.advance(TimePoint{10s}, unlimited, [&](const DueValue<int>& item) {
        fired.push_back(item.value);
        if (item.value < 10) {
            const auto own = handles[static_cast<std::size_t>(item.value)];
            expect(!ring.cancel(own) && ring.find(own) == nullptr, "its own handle is stale");
        }
        if (item.value == 0) {
            ring.put(TimePoint{10s}, 12);  // after all of them
            ring.put(TimePoint{1s}, 11);   // before all of them
            ring.put(TimePoint{30s}, 13);  // not yet
            expect(ring.cancel(handles[3]) == 3, "one that is about to fire");
            expect(ring.cancel(handles[10]) == 10, "one that is not");
        }
        if (item.value == 11) ring.put(TimePoint{1s}, 14);
    });
    REQUIRE(fired == Values{0, 11, 14, 1, 2, 4, 5, 6, 7, 8, 9, 12});
    REQUIRE(ring.check());
    REQUIRE(advance(ring, TimePoint{60s}) == Values{13});
    REQUIRE(ring.entries() == 0);
}

TEST_CASE("A sink may put earlier values before it refuses: then these are the first") {
    Ring ring;
    ring.put(TimePoint{5s}, 2);
    REQUIRE(ring.advance(TimePoint{5s}, 10,
                         [&](const DueValue<int>&) {
                             ring.put(TimePoint{4s}, 1);
                             return false;
                         })
                .refused);
    REQUIRE(ring.check());
    REQUIRE(advance(ring, TimePoint{5s}) == Values{1, 2});
}

TEST_CASE("A sink that puts a value due now for each one that it gets is stopped by the limit") {
    Ring ring;
    ring.put(TimePoint{5s}, 0);
    for (int count = 0; count < 10; ++count) {
        const Evicted evicted = ring.advance(
            TimePoint{5s}, 100, [&](const DueValue<int>& item) { ring.put_after(TimePoint{5s}, 0s, item.value + 1); });
        REQUIRE(evicted.items <= 100);
        REQUIRE(evicted.items >= 40);
        REQUIRE(evicted.more);
        REQUIRE(ring.size() == 1);
        REQUIRE(ring.entries() == 1);
    }
}

TEST_CASE("SlotRing advanced by its own sink does nothing") {
    Ring ring;
    ring.put(TimePoint{5s}, 1);
    ring.put(TimePoint{6s}, 2);
    int inside = 0;
    const Evicted evicted = ring.advance(TimePoint{5s}, unlimited, [&](const DueValue<int>&) {
        const Evicted nothing = ring.advance(TimePoint{10s}, unlimited, [&](const DueValue<int>&) { ++inside; });
        expect(nothing.items == 0 && !nothing.refused && !nothing.more, "it says so");
    });
    REQUIRE(evicted.items == 1);
    REQUIRE(inside == 0);
    REQUIRE(advance(ring, TimePoint{10s}) == Values{2});
}

TEST_CASE("Many rings at once know nothing of each other") {
    std::vector<Ring> rings;
    for (int count = 0; count < 200; ++count) {
        rings.emplace_back(SlotRingOptions{.tick = 1ms * (1 + count), .slots = static_cast<std::size_t>(1 + count)});
    }
    for (int value = 0; value < 100; ++value) {
        for (auto& ring : rings) ring.put(TimePoint{10ms * value}, int{value});
    }
    for (std::size_t count = 0; count < rings.size(); ++count) {
        REQUIRE(advance(rings[count], TimePoint{10s}) == zero_to(100));
        for (std::size_t other = count + 1; other < rings.size(); ++other) expect(rings[other].size() == 100, "size");
    }
}

TEST_CASE("A SlotRing that is moved takes everything along, and its handles stay good") {
    Ring ring({.tick = 1s, .slots = 10});
    const auto handle = ring.put(TimePoint{5s}, -1);
    for (int value = 0; value < 100; ++value) ring.put(TimePoint{1s * value}, int{value});
    cancel_many(ring, TimePoint{8s});
    Ring moved(std::move(ring));
    REQUIRE(moved.check());
    REQUIRE(moved.size() == 101);
    REQUIRE(moved.slots() == 10);
    REQUIRE(moved.cancel(handle) == -1);
    cancel_many(moved, TimePoint{80s});
    REQUIRE(moved.check());
    REQUIRE(advance(moved, TimePoint{49s}) == zero_to(50));
    ring = std::move(moved);
    REQUIRE(ring.size() == 50);
    REQUIRE(ring.next_due() == TimePoint{50s});
    REQUIRE(advance(ring, TimePoint{1h}).size() == 50);
    ring.put(TimePoint{2h}, 7);
    REQUIRE(advance(ring, TimePoint{2h}) == Values{7});
}

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
        REQUIRE(failures >= 10);
        checked.drain();
    }
}
