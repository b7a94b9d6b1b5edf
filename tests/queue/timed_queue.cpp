#include <vigil/queue/timed_queue.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#include <vigil/queue/delayed_queue.hpp>
#include <vigil/queue/priority_hash_queue.hpp>
#include <vigil/queue/slot_ring.hpp>

#include "random.hpp"

// What every TimedQueue promises. A new one needs an adapter, and a word in the list of the test cases.

using namespace std::chrono_literals;
using vigil::Duration;
using vigil::Evicted;
using vigil::TimedQueue;
using vigil::TimePoint;
using vigil::testing::Random;

static_assert(TimedQueue<vigil::PriorityHashQueue>);
static_assert(TimedQueue<vigil::SlotRing<int>>);
static_assert(TimedQueue<vigil::SlotRing<std::unique_ptr<int>>>);
static_assert(TimedQueue<vigil::DelayedQueue<int>>);
static_assert(TimedQueue<vigil::DelayedQueue<std::unique_ptr<int>>>);
static_assert(!TimedQueue<int>);
static_assert(!TimedQueue<std::vector<int>>);
static_assert(!TimedQueue<const vigil::SlotRing<int>>);

namespace {

using Numbers = std::vector<int>;
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// An adapter knows how to add a number to its queue, what number an item has, and how many items a call moves at most.
struct Keyed {
    using Queue = vigil::PriorityHashQueue;
    static constexpr std::size_t most = unlimited;

    static Queue make() { return Queue{}; }
    static void add(Queue& queue, TimePoint now, TimePoint due, int number) {
        queue.push(now, std::to_string(number), "data", due);
    }
    static int number(const vigil::KeyedItem& item) {
        int number = 0;
        std::from_chars(item.key.data(), item.key.data() + item.key.size(), number);
        return number;
    }
};

struct Ring {
    using Queue = vigil::SlotRing<int>;
    static constexpr std::size_t most = unlimited;

    static Queue make() { return Queue({.tick = 1ms, .slots = 1000}); }
    static void add(Queue& queue, TimePoint /*now*/, TimePoint due, int number) { queue.put(due, int{number}); }
    static int number(const vigil::DueValue<int>& item) { return item.value; }
};

struct Delayed {
    using Queue = vigil::DelayedQueue<int>;
    static constexpr std::size_t most = 100;

    static Queue make() { return Queue{}; }
    static void add(Queue& queue, TimePoint now, TimePoint due, int number) {
        if (due < now || due == TimePoint::max()) {  // no delay leads there
            queue.restore(now, due, int{number});
        } else {
            queue.offer(now, int{number}, due - now);
        }
    }
    static int number(const vigil::DueValue<int>& item) { return item.value; }
};

/// A queue of numbers. All dues are whole milliseconds, which is when a SlotRing has its ticks.
template <class Adapter>
class NumberQueue {
   public:
    void add(TimePoint now, TimePoint due, int number) { Adapter::add(queue, now, due, number); }
    void add(TimePoint due, int number) { add(TimePoint{}, due, number); }

    /// `sink(number)`.
    template <class Sink>
    Evicted evict(TimePoint now, std::size_t limit, Sink&& sink) {
        const Evicted evicted = queue.evict_due(now, limit, [&](const auto& item) {
            expect(item.due <= now, "nothing is early");
            return sink(Adapter::number(item));
        });
        expect(evicted.items <= limit, "the limit is kept");
        return evicted;
    }
    /// Everything that is due, in as many calls as it takes.
    Numbers evict_all(TimePoint now, std::size_t limit = unlimited) {
        Numbers numbers;
        const auto take = [&](int number) {
            numbers.push_back(number);
            return true;
        };
        std::size_t items = 0;
        for (bool more = true; more;) {
            const Evicted evicted = evict(now, limit, take);
            expect(!evicted.refused, "nothing was refused");
            items += evicted.items;
            more = evicted.more;
        }
        expect(items == numbers.size(), "the items are counted");
        expect(!queue.next_due() || *queue.next_due() > now, "there is nothing more to do at that time");
        expect(queue.check(), "check()");
        return numbers;
    }

    typename Adapter::Queue queue = Adapter::make();
};

Numbers zero_to(int end) {
    Numbers numbers;
    for (int number = 0; number < end; ++number) numbers.push_back(number);
    return numbers;
}

}  // namespace

TEMPLATE_TEST_CASE("A TimedQueue with nothing in it has no next due and gives nothing", "", Keyed, Ring, Delayed) {
    NumberQueue<TestType> numbers;
    for (int round = 0; round < 3; ++round) {
        REQUIRE_FALSE(numbers.queue.next_due());
        REQUIRE(numbers.evict_all(TimePoint{1h * round}).empty());
        REQUIRE(numbers.queue.check());
        numbers.add(TimePoint{1h * round}, TimePoint{1h * round + 1s}, 7);
        REQUIRE(numbers.queue.next_due());
        REQUIRE(numbers.evict_all(TimePoint{1h * round + 1s}) == Numbers{7});
    }
}

TEMPLATE_TEST_CASE("A TimedQueue gives nothing early, all that is due, in order, and its next due is never late", "",
                   Keyed, Ring, Delayed) {
    Random random;
    CAPTURE(random.seed());
    for (const TimePoint start : {TimePoint{}, TimePoint{12345h}, TimePoint{-10s}}) {
        NumberQueue<TestType> numbers;
        std::set<std::pair<TimePoint, int>> expected;
        TimePoint now = start;
        for (int number = 0; number < 20'000; ++number) {
            const int most = random.one_in(10) ? 100'000'000 : random.one_in(3) ? 100'000 : 100;
            const TimePoint due = now + 1ms * static_cast<int>(random.below(most)) - 20ms;
            numbers.add(now, due, number);
            expected.emplace(due, number);
            expect(*numbers.queue.next_due() <= expected.begin()->first, "the next due is not late");
            if (random.one_in(10)) now += 1ms * static_cast<int>(random.below(random.one_in(100) ? 100'000 : 30));
            if (!random.one_in(3)) continue;
            const bool more = numbers
                                  .evict(now, 1 + random.below(100),
                                         [&](int taken) {
                                             expect(!expected.empty() && taken == expected.begin()->second, "in order");
                                             expected.erase(expected.begin());
                                             return true;
                                         })
                                  .more;
            expect(more || expected.empty() || expected.begin()->first > now, "all that is due is given");
            expect(numbers.queue.next_due().has_value() == !expected.empty(), "a next due, if there is anything");
            if (number % 1000 < 3) expect(numbers.queue.check(), "check()");
        }
        for (const int number : numbers.evict_all(TimePoint::max())) {
            expect(number == expected.begin()->second, "in order to the last");
            expected.erase(expected.begin());
        }
        REQUIRE(expected.empty());
    }
}

TEMPLATE_TEST_CASE("A driver that wakes at the next due, and calls while there is more, gets each item at its due", "",
                   Keyed, Ring, Delayed) {
    Random random;
    CAPTURE(random.seed());
    NumberQueue<TestType> numbers;
    std::vector<TimePoint> dues;
    for (int number = 0; number < 3000; ++number) {
        dues.push_back(TimePoint{1h + 1ms * static_cast<int>(random.below(random.one_in(2) ? 5000 : 50'000'000))});
        numbers.add(TimePoint{}, dues.back(), number);
    }
    std::size_t given = 0, wakes = 0;
    while (const auto now = numbers.queue.next_due()) {
        ++wakes;
        for (const int number : numbers.evict_all(*now, 10)) {
            expect(dues[static_cast<std::size_t>(number)] == *now, "at its due");
            ++given;
        }
    }
    REQUIRE(given == 3000);
    REQUIRE(wakes < 10'000);
}

TEMPLATE_TEST_CASE("A TimedQueue keeps the order of items that are due at the same time", "", Keyed, Ring, Delayed) {
    for (const int count : {10, 5000}) {
        NumberQueue<TestType> numbers;
        for (int number = 0; number < count; ++number) numbers.add(TimePoint{5s}, number);
        REQUIRE(numbers.evict_all(TimePoint{5s} - 1us).empty());
        REQUIRE(numbers.evict_all(TimePoint{5s}) == zero_to(count));
    }
}

TEMPLATE_TEST_CASE("A TimedQueue keeps the limit, and gets on whatever it is", "", Keyed, Ring, Delayed) {
    for (const std::size_t limit : {1, 2, 15, 1000}) {
        CAPTURE(limit);
        NumberQueue<TestType> numbers;
        for (int number = 0; number < 5000; ++number) numbers.add(TimePoint{5s + 1ms * (number / 1000)}, number);
        Numbers taken;
        std::size_t calls = 0;
        while (numbers.queue.next_due()) {
            expect(++calls <= 3 * 5000, "each call gets on");
            const Evicted evicted = numbers.evict(TimePoint{6s}, limit, [&](int number) {
                taken.push_back(number);
                return true;
            });
            expect(evicted.more || !numbers.queue.next_due(), "there is more as long as anything is due");
            if (calls % 100 == 0) expect(numbers.queue.check(), "check()");
        }
        REQUIRE(taken == zero_to(5000));
    }
}

TEMPLATE_TEST_CASE("A TimedQueue asked for nothing gives nothing, and there may be more", "", Keyed, Ring, Delayed) {
    NumberQueue<TestType> numbers;
    numbers.add(TimePoint{5s}, 0);
    const Evicted evicted = numbers.evict(TimePoint{5s}, 0, [](int) { return true; });
    REQUIRE(evicted.items == 0);
    REQUIRE(evicted.more);
    REQUIRE(numbers.evict_all(TimePoint{5s}) == zero_to(1));
}

TEMPLATE_TEST_CASE("A TimedQueue keeps an item that is refused, offers nothing after it, and it first again", "", Keyed,
                   Ring, Delayed) {
    for (const int count : {10, 3000}) {
        NumberQueue<TestType> numbers;
        for (int number = 0; number < count; ++number) numbers.add(TimePoint{5s}, number);
        int next = 0;
        while (next < count) {
            int offered = 0;
            const Evicted evicted = numbers.evict(TimePoint{6s}, unlimited, [&](int number) {
                expect(number == next, "the refused one is the first again");
                if (++offered > 3) return false;
                ++next;
                return true;
            });
            expect(offered <= 4, "nothing is offered after a refusal");
            expect(evicted.refused == (offered == 4), "a refusal is said");
            expect(evicted.items == static_cast<std::size_t>(std::min(offered, 3)), "and is not counted");
            expect(!evicted.refused || *numbers.queue.next_due() <= TimePoint{6s}, "it stays due");
            if (next % 100 == 0) expect(numbers.queue.check(), "check()");
        }
        REQUIRE_FALSE(numbers.queue.next_due());
    }
}

TEMPLATE_TEST_CASE("What a sink throws comes through a TimedQueue, and the item stays", "", Keyed, Ring, Delayed) {
    NumberQueue<TestType> numbers;
    for (int number = 0; number < 5; ++number) numbers.add(TimePoint{5s}, number);
    int next = 0;
    for (int call = 0; call < 3; ++call) {
        const auto take_one = [&, first = next](int number) {
            expect(number == next, "the item stays, the first again");
            if (number != first) throw std::logic_error("no more");
            ++next;
            return true;
        };
        REQUIRE_THROWS_AS(numbers.evict(TimePoint{5s}, unlimited, take_one), std::logic_error);
        REQUIRE(numbers.queue.check());
    }
    REQUIRE(numbers.evict_all(TimePoint{5s}) == Numbers{3, 4});
}

TEMPLATE_TEST_CASE("evict_due() does nothing inside of a sink", "", Keyed, Ring, Delayed) {
    NumberQueue<TestType> numbers;
    for (int number = 0; number < 3; ++number) numbers.add(TimePoint{5s}, number);
    int inside = 0;
    const Evicted evicted = numbers.evict(TimePoint{5s}, unlimited, [&](int number) {
        const Evicted nothing = numbers.evict(TimePoint{9s}, unlimited, [&](int) { return ++inside > 0; });
        expect(nothing.items == 0 && !nothing.refused && !nothing.more, "it says so");
        return number < 2;
    });
    REQUIRE(evicted.items == 2);
    REQUIRE(inside == 0);
    // And does again what it should after a refusal and an exception.
    REQUIRE(numbers.evict(TimePoint{5s}, 1, [](int) { return false; }).refused);
    REQUIRE_THROWS(numbers.evict(TimePoint{5s}, 1, [](int) -> bool { throw std::logic_error("no"); }));
    REQUIRE(numbers.evict_all(TimePoint{5s}) == Numbers{2});
}

TEMPLATE_TEST_CASE("A sink may add items to its TimedQueue: earlier ones, some due now, and later ones", "", Keyed,
                   Ring, Delayed) {
    for (const int others : {0, 3000}) {
        NumberQueue<TestType> numbers;
        for (int number = 0; number < others; ++number) numbers.add(TimePoint{50s}, 1000 + number);
        const TimePoint now{5s};
        for (int number = 0; number < 3; ++number) numbers.add(TimePoint{4s + 1ms * number}, number);
        Numbers taken;
        for (bool more = true; more;) {
            more = numbers
                       .evict(now, 10,
                              [&](int number) {
                                  taken.push_back(number);
                                  if (number != 1) return true;
                                  numbers.add(now, now + 1ms, 14);
                                  numbers.add(now, now, 12);
                                  numbers.add(now, TimePoint{1s}, 10);
                                  numbers.add(now, TimePoint{4s + 1ms}, 11);
                                  numbers.add(now, now, 13);
                                  return true;
                              })
                       .more;
        }
        REQUIRE(taken == Numbers{0, 1, 10, 11, 2, 12, 13});
        REQUIRE(numbers.evict_all(now + 1ms) == Numbers{14});
        REQUIRE(numbers.evict_all(TimePoint{50s}).size() == static_cast<std::size_t>(others));
    }
}

TEMPLATE_TEST_CASE("A sink that adds an item for each that it takes is stopped by the limit", "", Keyed, Ring,
                   Delayed) {
    NumberQueue<TestType> numbers;
    const TimePoint now{5s};
    numbers.add(now, 0);
    int next = 0;
    for (int call = 0; call < 100; ++call) {
        const Evicted evicted = numbers.evict(now, 50, [&](int number) {
            expect(number == next, "in order");
            numbers.add(now, now, ++next);
            return true;
        });
        expect(evicted.more && !evicted.refused, "there is more");
    }
    REQUIRE(next > 1000);
    REQUIRE(numbers.evict_all(now) == Numbers{next});
}

TEMPLATE_TEST_CASE("A sink may add an earlier item and then refuse: the earlier one comes first", "", Keyed, Ring,
                   Delayed) {
    NumberQueue<TestType> numbers;
    numbers.add(TimePoint{5s}, 1);
    const Evicted evicted = numbers.evict(TimePoint{5s}, unlimited, [&](int) {
        numbers.add(TimePoint{5s}, TimePoint{4s}, 0);
        return false;
    });
    REQUIRE(evicted.refused);
    REQUIRE(numbers.evict_all(TimePoint{5s}) == zero_to(2));
}

TEMPLATE_TEST_CASE("A TimedQueue gives a million items that are due at once in pieces", "", Keyed, Ring, Delayed) {
    constexpr int count = 1'000'000;
    constexpr std::size_t limit = 1000;
    NumberQueue<TestType> numbers;
    for (int number = 0; number < count; ++number) numbers.add(TimePoint{5s}, number);
    int next = 0;
    std::size_t calls = 0;
    for (bool more = true; more; ++calls) {
        more = numbers.evict(TimePoint{5s}, limit, [&](int number) { return number == next++; }).more;
    }
    REQUIRE(next == count);
    REQUIRE(calls <= 1 + 3 * count / std::min(limit, TestType::most));
    REQUIRE_FALSE(numbers.queue.next_due());
    REQUIRE(numbers.queue.check());
}

TEMPLATE_TEST_CASE("A TimedQueue keeps items to the end of time", "", Keyed, Ring, Delayed) {
    NumberQueue<TestType> numbers;
    numbers.add(TimePoint{12345h}, TimePoint::max(), 2);
    numbers.add(TimePoint{12345h}, TimePoint::max(), 3);
    numbers.add(TimePoint{12345h}, TimePoint::min(), 0);
    numbers.add(TimePoint{12345h}, TimePoint{12345h}, 1);
    REQUIRE(numbers.evict_all(TimePoint{12345h}) == zero_to(2));
    REQUIRE(numbers.evict_all(TimePoint::max() - 1us).empty());
    REQUIRE(numbers.evict_all(TimePoint::max()) == Numbers{2, 3});
}

TEMPLATE_TEST_CASE("A TimedQueue that is moved takes everything along and can be used", "", Keyed, Ring, Delayed) {
    for (const int count : {100, 5000}) {
        NumberQueue<TestType> numbers;
        for (int number = 0; number < count; ++number) numbers.add(TimePoint{1s + 1ms * number}, number);
        auto moved = std::move(numbers.queue);
        REQUIRE(moved.check());
        numbers.queue = std::move(moved);
        REQUIRE(numbers.queue.check());
        REQUIRE(*numbers.queue.next_due() <= TimePoint{1s});
        REQUIRE(numbers.evict_all(TimePoint{1s}) == Numbers{0});
        for (int number = count; number < 2 * count; ++number) numbers.add(TimePoint{1s + 1ms * number}, number);
        REQUIRE(numbers.evict_all(TimePoint{1h}).size() == static_cast<std::size_t>(2 * count - 1));
    }
}
