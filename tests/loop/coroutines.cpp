#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vigil/vigil.hpp>

#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;
using vigil::Async;
using vigil::Loop;

namespace {

Async<int> answer_after(Loop& loop, vigil::Duration delay) {
    co_await loop.sleep(delay);
    co_return 42;
}

Async<std::unique_ptr<int>> move_only(Loop& loop) {
    co_await loop.sleep(1ms);
    co_return std::make_unique<int>(7);
}

Async<> fails_after(Loop& loop, vigil::Duration delay) {
    co_await loop.sleep(delay);
    throw std::runtime_error("failed");
}

Async<> append(Loop& loop, std::string& order, char name, vigil::Duration delay) {
    co_await loop.sleep(delay);
    order += name;
}

/// Sets a flag when it is destroyed.
struct Witness {
    bool& destroyed;
    ~Witness() { destroyed = true; }
};

Async<> sleeps_long(Loop& loop, bool& destroyed, bool& resumed) {
    const Witness witness{destroyed};
    co_await loop.sleep(1h);
    resumed = true;
}

Async<> awaits(Async<> inner) { co_await std::move(inner); }

}  // namespace

TEMPLATE_LIST_TEST_CASE("A spawned coroutine starts as a tick, sleeps and awaits others", "", EveryWay) {
    TestType way;
    int result = 0;
    auto main = [](Loop& loop, int& out) -> Async<> {
        const int first = co_await answer_after(loop, 1ms);
        const auto second = co_await move_only(loop);
        out = first + *second;
    };
    way.loop.spawn(main(way.loop, result));
    CHECK(result == 0);
    way.run();
    CHECK(result == 49);
}

TEST_CASE("A coroutine is lazy: what is never awaited never runs") {
    Loop loop;
    std::string order;
    { auto never = append(loop, order, 'x', 0ms); }
    loop.run();
    CHECK(order.empty());
}

TEST_CASE("Sleepers wake up in order of their dues, on virtual time") {
    auto loop = Loop::with_virtual_time(vigil::VirtualTime::automatic);
    std::string order;
    loop.spawn(append(loop, order, 'c', 3h));
    loop.spawn(append(loop, order, 'a', 1h));
    loop.spawn(append(loop, order, 'b', 2h));
    loop.run();
    CHECK(order == "abc");
}

TEMPLATE_LIST_TEST_CASE("Exceptions travel through co_await", "", EveryWay) {
    TestType way;
    std::string caught;
    auto main = [](Loop& loop, std::string& out) -> Async<> {
        try {
            co_await awaits(fails_after(loop, 1ms));
        } catch (const std::runtime_error& error) {
            out = error.what();
        }
    };
    way.loop.spawn(main(way.loop, caught));
    way.run();
    CHECK(caught == "failed");
}

TEST_CASE("An exception that leaves a spawned coroutine comes out of run(), and the loop goes on") {
    Loop loop;
    std::string order;
    loop.spawn(fails_after(loop, 1ms));
    loop.spawn(append(loop, order, 'x', 3ms));
    CHECK_THROWS_WITH(loop.run(), "failed");
    loop.run();
    CHECK(order == "x");
}

TEST_CASE("A long chain of coroutines that end at once does not use up the stack") {
    Loop loop;
    std::int64_t sum = 0;
    auto one = []() -> Async<int> { co_return 1; };
    auto main = [](auto& each, std::int64_t& out) -> Async<> {
        for (int round = 0; round < 1'000'000; ++round) out += co_await each();
    };
    loop.spawn(main(one, sum));
    loop.run();
    CHECK(sum == 1'000'000);
}

TEST_CASE("A coroutine destroyed while it sleeps takes its timer along") {
    auto loop = Loop::with_virtual_time();
    bool destroyed = false, resumed = false;
    const auto id = loop.spawn(awaits(sleeps_long(loop, destroyed, resumed)));
    loop.advance(1s);
    CHECK_FALSE(destroyed);
    CHECK(loop.cancel_spawn(id));
    CHECK(destroyed);
    CHECK_FALSE(loop.cancel_spawn(id));
    loop.advance(2h);
    CHECK_FALSE(resumed);
}

TEST_CASE("A loop that is destroyed destroys the coroutines that sleep on it") {
    bool destroyed = false, resumed = false;
    {
        Loop loop;
        loop.spawn(awaits(sleeps_long(loop, destroyed, resumed)));
        loop.run_nowait();
        loop.run_nowait();
    }
    CHECK(destroyed);
    CHECK_FALSE(resumed);
}

TEST_CASE("A coroutine cancelled before it started never starts") {
    Loop loop;
    std::string order;
    CHECK(loop.cancel_spawn(loop.spawn(append(loop, order, 'x', 0ms))));
    loop.run();
    CHECK(order.empty());
}

TEST_CASE("A coroutine may cancel itself: it goes on to its next co_await") {
    auto loop = Loop::with_virtual_time();
    std::string order;
    vigil::SpawnId id{};
    auto main = [](Loop& on, std::string& out, vigil::SpawnId& self) -> Async<> {
        co_await on.sleep(1ms);
        CHECK(on.cancel_spawn(self));
        out += 'a';
        co_await on.sleep(1ms);
        out += 'b';
    };
    id = loop.spawn(main(loop, order, id));
    loop.advance(1s);
    CHECK(order == "a");
}

TEST_CASE("A coroutine that cancels itself may also just end") {
    auto loop = Loop::with_virtual_time();
    vigil::SpawnId id{};
    auto main = [](Loop& on, vigil::SpawnId& self) -> Async<> {
        CHECK(on.cancel_spawn(self));
        co_return;
    };
    id = loop.spawn(main(loop, id));
    loop.advance(1s);
    CHECK_FALSE(loop.cancel_spawn(id));
}

TEST_CASE("A stop token wakes a sleeper with Cancelled, which is a normal end of a spawned coroutine") {
    auto loop = Loop::with_virtual_time();
    std::stop_source source;
    std::string order;
    auto main = [](Loop& on, std::stop_token stop, std::string& out) -> Async<> {
        try {
            co_await on.sleep(1h, stop);
        } catch (const vigil::Cancelled&) {
            out += "cancelled ";
        }
        co_await on.sleep(1h, stop);  // stop is requested already: throws at once
        out += "never";
    };
    loop.spawn(main(loop, source.get_token(), order));
    loop.advance(1s);
    source.request_stop();
    CHECK(order.empty());  // not inside of request_stop()
    loop.advance(0s);
    CHECK(order == "cancelled ");
    loop.advance(3h);
    CHECK(order == "cancelled ");
}

TEST_CASE("A sleep that ends before stop is requested is not cancelled") {
    auto loop = Loop::with_virtual_time();
    std::stop_source source;
    bool slept = false;
    auto main = [](Loop& on, std::stop_token stop, bool& out) -> Async<> {
        co_await on.sleep(1s, stop);
        out = true;
    };
    loop.spawn(main(loop, source.get_token(), slept));
    loop.advance(1s);
    source.request_stop();
    loop.advance(1s);
    CHECK(slept);
}

TEST_CASE("Stop requested for a sleeper that was destroyed meanwhile has no effect") {
    auto loop = Loop::with_virtual_time();
    std::stop_source source;
    bool slept = false;
    auto main = [](Loop& on, std::stop_token stop, bool& out) -> Async<> {
        try {
            co_await on.sleep(1s, stop);
        } catch (...) {
        }
        out = true;
    };
    const auto id = loop.spawn(main(loop, source.get_token(), slept));
    loop.advance(1ms);
    source.request_stop();
    loop.cancel_spawn(id);
    loop.advance(2s);
    CHECK_FALSE(slept);
}
