#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <vigil/queue/priority_hash_queue.hpp>

#include "failing_allocator.hpp"
#include "queue/keyed_copy.hpp"
#include "queue/keyed_model.hpp"
#include "queue/random_time.hpp"

using namespace std::chrono_literals;
using vigil::BasicPriorityHashQueue;
using vigil::DataMode;
using vigil::Duration;
using vigil::Expiry;
using vigil::KeyedItem;
using vigil::PriorityHashQueue;
using vigil::Push;
using vigil::PushOptions;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::ItemCopy;
using vigil::testing::items_of;
using vigil::testing::KeyedModel;
using vigil::testing::Mirror;
using vigil::testing::Random;
using vigil::testing::random_due;
using vigil::testing::random_step_from;
using vigil::testing::same_but_for_sequence;

namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// A message with bytes of its own.
struct Message {
    std::string key;
    std::string data;
    std::string type;
    TimePoint due;
    PushOptions options;

    [[nodiscard]] Push view() const {
        Push push{key, data, due, options};
        push.options.type = type;
        return push;
    }
};

/// A queue beside a model that does the same.
template <class Queue>
class CheckedQueue {
   public:
    CheckedQueue(TimePoint start, std::uint64_t hash_seed) : queue({}, hash_seed), now(start) {}

    void set_defaults(const PushOptions& options) {
        queue.set_defaults(options);
        model.set_defaults(options);
    }

    /// False if memory ran out.
    bool push(const Message& message, std::size_t allowed_allocations = unlimited) {
        const auto [key, data, due, options] = message.view();
        try {
            const auto pushed = [&] {
                const AllocationsFailAfter limited{allowed_allocations};
                return queue.push(now, key, data, due, options);
            }();
            const auto expected = model.push(now, message.view());
            expect(pushed.inserted == expected.inserted, "a push says whether it made a new item");
            expect(pushed.sealed == expected.sealed, "a push says whether it sealed one");
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    /// How many of them were pushed before memory ran out.
    std::size_t push(std::span<const Message> messages, std::size_t allowed_allocations = unlimited) {
        std::vector<Push> pushes;
        for (const Message& message : messages) pushes.push_back(message.view());
        std::size_t done = 0;
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            done = queue.push(now, std::span<const Push>(pushes));
            expect(done > 0 || pushes.empty(), "some are pushed, or it throws");
        } catch (const std::bad_alloc&) {
        }
        for (std::size_t index = 0; index < done; ++index) model.push(now, pushes[index]);
        return done;
    }

    void cancel(std::string_view key) { expect(queue.cancel(key) == model.cancel(key), "what is there is cancelled"); }

    /// False if memory ran out.
    bool reschedule(std::string_view key, TimePoint due, std::size_t allowed_allocations = unlimited) {
        try {
            const bool moved = [&] {
                const AllocationsFailAfter limited{allowed_allocations};
                return queue.reschedule(now, key, due);
            }();
            expect(moved == model.reschedule(key, due), "what is there is rescheduled");
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    /// False if memory ran out.
    bool restore(const ItemCopy& item, std::size_t allowed_allocations = unlimited) {
        try {
            const bool restored = [&] {
                const AllocationsFailAfter limited{allowed_allocations};
                return queue.restore(now, item.view()).has_value();
            }();
            expect(restored == model.restore(item), "what is not there is restored");
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    void find(std::string_view key) const {
        const auto found = queue.find(key);
        const ItemCopy* expected = model.find(key);
        expect(found.has_value() == (expected != nullptr), "what is there is found");
        expect(!found || same_but_for_sequence(*found, expected->view()), "it is found as it should be");
    }

    void evict() {
        const auto evicted = queue.evict(now);
        expect(evicted.has_value() == model.has_due(now), "something is evicted if and only if it is due");
        if (!evicted) return;
        const KeyedItem first = model.first().view();
        const std::vector<std::string> data(first.data.begin(), first.data.end());
        expect(evicted->key == first.key && evicted->type == first.type && evicted->data == data &&
                   evicted->due == first.due && evicted->first_push == first.first_push &&
                   evicted->pushes == first.pushes,
               "the earliest is evicted, as it should be");
        model.take_first();
    }

    enum class Answer { take, refuse, fail };
    /// `act(item)` may change the queue and says what the sink answers.
    template <class Act>
    void evict_due(std::size_t limit, Act&& act) {
        struct Failed {};
        std::size_t items = 0;
        bool refused = false;
        try {
            const auto evicted = queue.evict_due(now, limit, [&](const KeyedItem& item) {
                expect(model.has_due(now), "only what is due is offered");
                expect(same_but_for_sequence(item, model.first().view()), "the earliest is offered, as it should be");
                model.offer_first();
                const Answer answer = act(item);
                const ItemCopy& offered = model.offered();
                expect(item.key == offered.key && item.type == offered.type && item.data.raw() == offered.raw,
                       "it stays as it is while the sink has it");
                if (answer == Answer::take) {
                    model.take_offered();
                    ++items;
                    return true;
                }
                model.keep_offered();
                if (answer == Answer::fail) throw Failed();
                refused = true;
                return false;
            });
            expect(evicted.items == items && items <= limit, "what was taken is counted");
            expect(evicted.refused == refused, "a refusal is told");
            expect(evicted.more || refused || !model.has_due(now), "all that is due comes out, but for the limit");
        } catch (const Failed&) {
        }
    }
    void evict_due(std::size_t limit) {
        evict_due(limit, [](const KeyedItem&) { return Answer::take; });
    }

    /// As evict_due(), but memory may run out: then false, and what was evicted before is gone.
    bool evict_with(std::size_t allowed_allocations) {
        auto expected = model.items().begin();
        std::size_t items = 0;
        const auto sink = [&](const KeyedItem& item) {  // must not allocate
            expect(same_but_for_sequence(item, expected++->second.view()), "all come out in order");
            ++items;
        };
        bool enough = true;
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            queue.evict_due(now, unlimited, sink);
        } catch (const std::bad_alloc&) {
            enough = false;
        }
        while (items-- > 0) model.take_first();
        expect(!enough || !model.has_due(now), "all that is due comes out");
        return enough;
    }

    void compare() const {
        expect(queue.size() == model.items().size() && queue.empty() == model.empty(), "the size");
        expect(queue.entries() <= 2 * queue.size() + 1000, "entries do not outnumber the items");
        const auto next_due = queue.next_due();
        expect(next_due.has_value() == !model.empty(), "there is a next due if there is any");
        expect(model.empty() || *next_due <= model.first().due, "the next due is not late");
    }
    void compare_all() const {
        compare();
        expect(queue.check(), "check()");
        auto expected = model.items().begin();
        std::optional<std::pair<TimePoint, std::uint64_t>> before;
        queue.each_by_due([&](const KeyedItem& item) {
            expect(expected != model.items().end(), "each_by_due() shows each once");
            expect(same_but_for_sequence(item, expected++->second.view()), "each_by_due() shows all in order");
            const std::pair rank(item.due, item.sequence);
            expect(!before || *before < rank, "in order of due and sequence");
            before = rank;
        });
        expect(expected == model.items().end(), "each_by_due() leaves nothing out");
        const auto earliest = queue.earliest();
        expect(model.empty() || same_but_for_sequence(*earliest, model.first().view()), "the earliest is exact");
    }

    void drain(std::size_t limit) {
        now = TimePoint::max();
        while (!model.empty()) evict_due(limit);
        compare_all();
        REQUIRE(queue.empty());
    }

    Queue queue;
    KeyedModel model;
    TimePoint now;
};

/// Keys of all lengths, each another one.
std::string key_of(std::size_t number) {
    const std::size_t lengths[] = {0, 2, 5, 9, 14, 60, 100};
    return std::to_string(number) + std::string(lengths[number % std::size(lengths)], 'k');
}

template <class Options>
auto any_of(Random& random, const Options& options) {
    return options[random.below(std::size(options))];
}

/// Small caps, so that sealing is common.
PushOptions random_options(Random& random, std::uint64_t seldom) {
    PushOptions options;
    constexpr DataMode modes[] = {DataMode::replace, DataMode::append, DataMode::keep_first};
    constexpr Expiry expiries[] = {Expiry::restart, Expiry::keep, Expiry::earliest};
    constexpr Duration waits[] = {-1s, 0s, 1ms, 100ms, 20s, Duration::max()};
    constexpr std::uint32_t counts[] = {0, 1, 2, 3, 5, ~std::uint32_t{0}};
    constexpr std::size_t sizes[] = {0, 1, 10, 50, 200, unlimited};
    if (random.one_in(3)) options.mode = any_of(random, modes);
    if (random.one_in(3)) options.expiry = any_of(random, expiries);
    if (random.one_in(seldom)) options.max_wait = any_of(random, waits);
    if (random.one_in(seldom)) options.max_count = any_of(random, counts);
    if (random.one_in(seldom)) options.max_bytes = any_of(random, sizes);
    return options;
}

const std::string types[] = {"", "a", "append", "some longer type", std::string(300, 't')};

Message random_message(Random& random, TimePoint now, std::size_t keys) {
    const std::size_t lengths[] = {0, 0, 3, 10, 30, 60, 200};
    const std::size_t length = random.one_in(500) ? 5000 : any_of(random, lengths);
    std::string data = std::to_string(random.below(1000)) + std::string(length, 'd');
    if (random.one_in(8)) data.clear();
    return {key_of(random.below(keys)), std::move(data), any_of(random, types), random_due(random, now),
            random_options(random, 8)};
}

template <class Queue>
class RandomSteps {
   public:
    RandomSteps(CheckedQueue<Queue>& checked, Random& random, std::size_t keys)
        : checked_(checked), random_(random), keys_(keys) {
        for (int count = 0; count < 5; ++count) change_defaults();
    }

    /// Gives how many operations that were.
    std::size_t step() {
        if (random_.one_in(8)) checked_.now = random_step_from(random_, checked_.now, checked_.queue.next_due());
        switch (random_.below(16)) {
            case 0:
                return push_batch();
            case 1:
                checked_.evict();
                return 1;
            case 2:
            case 3:
                return evict_due();
            case 4:
                if (random_.one_in(100)) change_defaults();
                checked_.find(random_key());
                return 1;
            case 5:
            case 6:
            case 7:
                change_one(random_key());
                return 1;
            default:
                checked_.push(random_message());
                return 1;
        }
    }
    [[nodiscard]] std::string random_key() const { return key_of(random_.below(keys_)); }
    [[nodiscard]] Message random_message() const { return ::random_message(random_, checked_.now, keys_); }

   private:
    void change_defaults() {
        PushOptions options = random_options(random_, 16);
        options.type = types[random_.below(std::size(types))];
        checked_.set_defaults(options);
    }

    void change_one(const std::string& key) {
        if (random_.one_in(2)) {
            checked_.cancel(key);
        } else {
            checked_.reschedule(key, random_due(random_, checked_.now));
        }
    }

    std::size_t push_batch() {
        std::vector<Message> messages(random_.one_in(10) ? 33 + random_.below(50) : random_.below(10));
        for (Message& message : messages) {
            message = random_message();
            if (random_.one_in(4)) message.key = messages.front().key;
        }
        expect(checked_.push(std::span<const Message>(messages)) == messages.size(), "all are pushed");
        return messages.size();
    }

    std::size_t evict_due() {
        constexpr std::size_t limits[] = {0, 1, 2, 15, 16, 100, unlimited};
        const std::size_t limit = any_of(random_, limits);
        const std::uint64_t seldom = random_.one_in(2) ? 5 : 1000;  // that it does anything but take
        std::size_t offers = 1;
        checked_.evict_due(limit, [&](const KeyedItem& item) {
            using Answer = typename CheckedQueue<Queue>::Answer;
            ++offers;
            while (random_.one_in(seldom)) act_in_sink(item);
            if (offers > 1000) return Answer::refuse;  // it may push and push what is due at once
            if (!random_.one_in(seldom)) return Answer::take;
            return random_.one_in(2) ? Answer::refuse : Answer::fail;
        });
        return offers;
    }

    void act_in_sink(const KeyedItem& item) {
        const std::string key = random_.one_in(2) ? std::string(item.key) : random_key();
        switch (random_.below(6)) {
            case 0:
                return checked_.find(key);
            case 1:
                return change_one(key);
            case 2:
                expect(!checked_.queue.evict(checked_.now), "a sink evicts nothing");
                return;
            default:
                Message message = random_message();
                message.key = key;
                checked_.push(message);
        }
    }

    CheckedQueue<Queue>& checked_;
    Random& random_;
    std::size_t keys_;
};

/// Runs `operation(allowed)` with 0, 1, 2.. allocations until it succeeds. Each time it fails, the queue must be as it
/// was. Gives how often it failed.
template <class Operation>
std::size_t failures_of(const CheckedQueue<PriorityHashQueue>& checked, Operation&& operation) {
    std::size_t failures = 0;
    while (!operation(failures)) {
        ++failures;
        checked.compare_all();
    }
    checked.compare();
    return failures;
}

}  // namespace

TEST_CASE("PriorityHashQueue does what a naive queue does") {
    Random random;
    CAPTURE(random.seed());
    const TimePoint starts[] = {TimePoint{}, TimePoint{-10s}, TimePoint{12345h}, TimePoint::min(),
                                TimePoint::max() - 1min};
    for (const TimePoint start : starts) {
        for (const std::size_t keys : {20, 20'000}) {
            CAPTURE(start.time_since_epoch().count(), keys);
            CheckedQueue<BasicPriorityHashQueue<Mirror>> checked(start, random.seed());
            RandomSteps steps(checked, random, keys);
            std::size_t done = 0;
            for (int step = 0; done < 120'000; ++step) {
                done += steps.step();
                checked.compare();
                if (step % 4000 != 0) continue;
                checked.compare_all();
                for (int count = 0; count < 100; ++count) checked.find(steps.random_key());
                expect(checked.queue.observer().items() == items_of(checked.queue), "the observer knows all");
            }
            expect(checked.queue.observer().right(), "the observer was told what can be");

            CheckedQueue<PriorityHashQueue> restored(checked.now, random.seed() + 1);
            for (const ItemCopy& item : checked.queue.observer().items_by_sequence()) restored.restore(item);
            expect(restored.queue.size() == checked.queue.size(), "each item is restored");
            restored.model = checked.model;
            restored.compare_all();
            restored.drain(unlimited);
            checked.drain(1 + random.below(100));
            expect(checked.queue.observer().items().empty(), "the observer knows that all are gone");
        }
    }
}

TEST_CASE("PriorityHashQueue does what a naive queue does when many items come and go") {
    Random random;
    CAPTURE(random.seed());
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, random.seed());
    for (const std::size_t size : {3000, 10, 1100, 900, 20'000, 0}) {
        CAPTURE(size);
        while (checked.queue.size() < size) {
            checked.push({key_of(random.below(100'000)), "data", "", random_due(random, checked.now), {}});
            checked.compare();
        }
        while (checked.queue.size() > size) {
            if (random.one_in(2)) checked.cancel(checked.model.first().key);
            checked.now = std::max(checked.now, checked.model.empty() ? checked.now : checked.model.first().due);
            checked.evict_due(1 + random.below(20));
            checked.compare();
        }
        checked.compare_all();
    }
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out in a push or a batch") {
    Random random;
    CAPTURE(random.seed());
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, random.seed());
    const RandomSteps steps(checked, random, 3000);
    std::size_t in_push = 0, in_batch = 0;
    for (int step = 0; step < 2000; ++step) {
        const Message message = steps.random_message();
        in_push += failures_of(checked, [&](std::size_t allowed) { return checked.push(message, allowed); });

        if (!random.one_in(10)) continue;
        std::vector<Message> messages(1 + random.below(40));
        for (Message& each : messages) each = steps.random_message();
        std::span<const Message> left(messages);
        in_batch += failures_of(checked, [&](std::size_t allowed) {
            left = left.subspan(checked.push(left, allowed));
            return left.empty();
        });
        if (random.one_in(10)) checked.now += 1s;
        if (random.one_in(10)) checked.evict_due(10);
    }
    REQUIRE(in_push >= 100);
    REQUIRE(in_batch >= 100);
    checked.drain(unlimited);
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out after most items have left") {
    // Those that are left lie in the rings of the schedule, though a heap would do for so few.
    const TimePoint dues[] = {TimePoint{8s}, TimePoint{1h}, TimePoint{90'000h}};
    for (const TimePoint later : dues) {
        CAPTURE(later.time_since_epoch().count());
        CheckedQueue<PriorityHashQueue> checked(TimePoint{}, 1);
        for (std::size_t number = 0; number < 1024; ++number) checked.push({key_of(number), "", "", TimePoint{1s}, {}});
        checked.push({"left", "", "", TimePoint{8s}, {}});
        checked.now = TimePoint{2s};
        checked.evict_due(unlimited);
        REQUIRE(checked.queue.size() == 1);
        for (std::size_t number = 0; number < 1000; ++number) {
            const Message message{key_of(number), "", "", later + number * 2ms, {}};
            failures_of(checked, [&](std::size_t allowed) { return checked.push(message, allowed); });
            const TimePoint earlier = later + number * 2ms - 1ms;
            failures_of(checked,
                        [&](std::size_t allowed) { return checked.reschedule(message.key, earlier, allowed); });
        }
        checked.drain(unlimited);
    }
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out in a reschedule") {
    Random random;
    CAPTURE(random.seed());
    constexpr std::size_t items = 20'000;
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, random.seed());
    for (std::size_t number = 0; number < items; ++number) checked.push({key_of(number), "", "", TimePoint{1h}, {}});
    std::size_t failures = 0;
    for (std::size_t number = 0; number < items; ++number) {
        const TimePoint due{Duration{random.below(Duration{random.one_in(2) ? 15s : 2h}.count())}};
        failures +=
            failures_of(checked, [&](std::size_t allowed) { return checked.reschedule(key_of(number), due, allowed); });
    }
    REQUIRE(failures >= 5);
    checked.drain(unlimited);
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out as an item is sealed") {
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, 1);
    std::size_t failures = 0;
    for (std::size_t number = 0; number < 3000; ++number) {
        const std::string key = key_of(number % 10);
        const std::string data(number % 7 * 100, 'x');
        const PushOptions options{.mode = DataMode::append, .max_count = 3, .max_bytes = 1000};
        const Message message{key, data, "type", TimePoint{1h} + number * 1s, options};
        failures += failures_of(checked, [&](std::size_t allowed) { return checked.push(message, allowed); });
    }
    REQUIRE(failures >= 1000);
    checked.drain(unlimited);
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out as what is parked or due is moved or sealed") {
    struct Case {
        const char* name;
        PushOptions options;
        TimePoint now;
        TimePoint due;
        std::size_t first_key;
        std::string data;
    };
    constexpr std::size_t items = 3000;
    const TimePoint start{}, parked_until{1h}, earlier{1s}, later{2h};
    const PushOptions append{.mode = DataMode::append};
    const Case cases[] = {
        {"moved earlier", {}, start, earlier, 0, ""},
        {"sealed by the second push", {.max_count = 2}, start, later, 0, ""},
        {"sealed with the new one", {.mode = DataMode::append, .max_bytes = 9}, start, later, 0, std::string(10, 'x')},
        {"new, and sealed at once", {.max_count = 1}, start, later, items, ""},
        {"due already, and replaced", {}, parked_until, later, 0, ""},
        {"due already, and appended to", append, parked_until, later, 0, ""},
    };
    for (const Case& tested : cases) {
        CAPTURE(tested.name);
        CheckedQueue<PriorityHashQueue> checked(start, 1);
        for (std::size_t number = 0; number < items; ++number) {
            checked.push({std::to_string(number), "", "", parked_until, {}});
        }
        checked.now = tested.now;
        checked.evict_due(unlimited, [](const KeyedItem&) { return decltype(checked)::Answer::refuse; });
        std::size_t failures = 0;
        for (std::size_t number = 0; number < items; ++number) {
            const Message message{std::to_string(tested.first_key + number), tested.data, "", tested.due + number * 2ms,
                                  tested.options};
            failures += failures_of(checked, [&](std::size_t allowed) { return checked.push(message, allowed); });
        }
        REQUIRE(failures >= 3);
        checked.drain(unlimited);
    }
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out as a sink pushes the key that it has") {
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, 1);
    for (std::size_t number = 0; number < 3000; ++number) checked.push({key_of(number), "", "", TimePoint{5s}, {}});
    checked.now = TimePoint{5s};
    std::size_t failures = 0, offers = 0;
    checked.evict_due(unlimited, [&](const KeyedItem& item) {
        const Message message{std::string(item.key), "", "", TimePoint{10s} + ++offers * 2ms, {}};
        failures += failures_of(checked, [&](std::size_t allowed) { return checked.push(message, allowed); });
        return decltype(checked)::Answer::take;
    });
    REQUIRE(offers == 3000);
    REQUIRE(failures >= 3);
    checked.drain(unlimited);
}

TEST_CASE("PriorityHashQueue is as it was when memory runs out in a restore") {
    Random random;
    CAPTURE(random.seed());
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, random.seed()), restored(TimePoint{}, random.seed() + 1);
    for (int count = 0; count < 3000; ++count) checked.push(random_message(random, checked.now, 3000));
    std::size_t failures = 0;
    for (const ItemCopy& item : items_of(checked.queue)) {
        failures += failures_of(restored, [&](std::size_t allowed) { return restored.restore(item, allowed); });
        restored.restore(item);
    }
    REQUIRE(failures >= 100);
    restored.drain(unlimited);
}

TEST_CASE("An item stays if there is no memory to evict() it") {
    CheckedQueue<PriorityHashQueue> checked(TimePoint{}, 1);
    const std::string large(100, 'x');
    const PushOptions append{.mode = DataMode::append};
    for (int count = 0; count < 2; ++count) checked.push({large, large, large, TimePoint{1s}, append});
    checked.now = TimePoint{1s};
    std::size_t failures = 0;
    const auto evict = [&](std::size_t allowed) {
        try {
            const AllocationsFailAfter limited{allowed};
            return checked.queue.evict(checked.now).has_value();
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    for (; !evict(failures); ++failures) checked.compare_all();
    REQUIRE(failures >= 4);
    REQUIRE(checked.queue.empty());
}

TEST_CASE("PriorityHashQueue loses nothing when memory runs out in evict_due") {
    Random random;
    CAPTURE(random.seed());
    std::size_t failures = 0;
    for (const std::size_t items : {1500, 20'000, 20'000}) {
        CheckedQueue<PriorityHashQueue> checked(TimePoint{}, random.seed());
        for (std::size_t number = 0; number < items; ++number) {
            checked.push({key_of(number), "data", "", checked.now + 5s + Duration{number * 389 % 1000}, {}});
        }
        for (std::size_t number = 0; number < items; ++number) {
            const Duration later{random.below(std::uint64_t{1} << random.below(36))};
            if (random.one_in(2)) checked.reschedule(key_of(number), checked.now + 5s + later);
        }
        while (!checked.model.empty()) {
            checked.now = std::max(checked.now, checked.model.first().due) + random.below(1000) * 1ms;
            for (std::size_t allowed = 0; !checked.evict_with(allowed); ++allowed, ++failures) checked.compare_all();
            checked.compare();
        }
        checked.compare_all();
    }
    REQUIRE(failures >= 10);
}

TEST_CASE("What is left when memory ran out in evict_due and the others were cancelled is due as before") {
    for (std::size_t allowed = 0; allowed < 10; ++allowed) {
        CAPTURE(allowed);
        CheckedQueue<PriorityHashQueue> checked(TimePoint{}, 1);
        for (std::size_t number = 0; number < 4000; ++number) {
            checked.push({key_of(number), "", "", TimePoint{5s}, {}});
        }
        checked.now = TimePoint{5s};
        checked.evict_with(allowed);
        while (checked.model.items().size() > 1) checked.cancel(checked.model.first().key);
        checked.compare_all();
        checked.evict_due(unlimited);
        REQUIRE(checked.queue.empty());
    }
}
