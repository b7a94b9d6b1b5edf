#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "queue/slot_ring_helpers.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing::slot_ring;
using std::chrono::years;
using vigil::DueValue;
using vigil::Duration;
using vigil::SlotRing;
using vigil::TimePoint;
using vigil::testing::Random;

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

TEST_CASE("SlotRing needs little memory for time-outs that are restarted for ever with the same due") {
    for (const Duration due : {Duration{100s}, Duration{100h}}) {  // in a slot, in a group of a later turn
        Ring ring;
        std::vector<Ring::Handle> live;
        for (int value = 0; value < 1000; ++value) live.push_back(ring.put(TimePoint{due}, int{value}));
        for (std::size_t step = 0; step < 100'000; ++step) {
            auto& handle = live[step % live.size()];
            const auto value = ring.cancel(handle);
            expect(value.has_value(), "what is live can be cancelled");
            handle = ring.put(TimePoint{due}, *value);
            expect(ring.entries() <= 3 * ring.size() + 10'000, "what is cancelled is cleared away");
        }
        REQUIRE(ring.bytes() < 1'000'000);
        REQUIRE(advance(ring, TimePoint{due}).size() == 1000);
    }
}
