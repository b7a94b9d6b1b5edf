#include <catch2/catch.hpp>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

TEMPLATE_LIST_TEST_CASE("A signal calls its listeners in the order in which they were added", "", EveryWay) {
    TestType way;
    std::string order;
    std::vector<vigil::SignalId> listeners;
    for (char name = 'a'; name <= 'h'; ++name) {
        listeners.push_back(way.loop.add_signal(SIGUSR1, [&, name](int signum) {
            CHECK(signum == SIGUSR1);
            order += name;
            if (name == 'h') {
                for (const auto listener : listeners) way.loop.remove_signal(listener);
            }
        }));
    }
    way.loop.future_tick([] { std::raise(SIGUSR1); });
    way.run();
    CHECK(order == "abcdefgh");
}

TEMPLATE_LIST_TEST_CASE("A listener keeps the loop running, and may remove itself in its callback", "", EveryWay) {
    TestType way;
    int called = 0;
    vigil::SignalId listener{};
    listener = way.loop.add_signal(SIGUSR2, [&](int) {
        ++called;
        way.loop.remove_signal(listener);
        way.loop.remove_signal(listener);
    });
    way.loop.add_timer(3ms, [] { std::raise(SIGUSR2); });
    way.run();
    CHECK(called == 1);
}

TEMPLATE_LIST_TEST_CASE("A listener that was removed by one before it is not called", "", EveryWay) {
    TestType way;
    vigil::SignalId first{}, second{};
    bool second_called = false;
    first = way.loop.add_signal(SIGUSR1, [&](int) {
        way.loop.remove_signal(second);
        way.loop.remove_signal(first);
    });
    second = way.loop.add_signal(SIGUSR1, [&](int) { second_called = true; });
    way.loop.future_tick([] { std::raise(SIGUSR1); });
    way.run();
    CHECK_FALSE(second_called);
}

TEST_CASE("No signal handler is installed unasked, and none is left behind") {
    const auto handler_of = [](int signum) {
        struct sigaction action {};
        sigaction(signum, nullptr, &action);
        return action.sa_handler;
    };
    const auto handlers = [&] {
        std::vector<decltype(handler_of(0))> all;
        for (int signum = 1; signum < SIGRTMIN; ++signum) all.push_back(handler_of(signum));
        return all;
    };
    const auto before = handlers();
    vigil::Loop loop;
    loop.add_timer(1ms, [] {});
    loop.run();
    CHECK(handlers() == before);
    const auto listener = loop.add_signal(SIGUSR1, [](int) {});
    CHECK(handlers() != before);
    loop.remove_signal(listener);
    loop.run();
    CHECK(handlers() == before);
}

TEST_CASE("A signal that cannot be caught is a clear error") {
    vigil::Loop loop;
    CHECK_THROWS_WITH(loop.add_signal(SIGKILL, [](int) {}), Catch::Contains("cannot listen for signal 9"));
    CHECK_THROWS_AS(loop.add_signal(-5, [](int) {}), std::system_error);
    loop.run();
}

TEST_CASE("A signal that arrives in a turn that failed is delivered in the next one") {
    vigil::Loop loop;
    std::string order;
    vigil::SignalId first{}, second{};
    first = loop.add_signal(SIGUSR1, [&](int) {
        order += "first ";
        loop.remove_signal(first);
        throw std::runtime_error("first");
    });
    second = loop.add_signal(SIGUSR1, [&](int) {
        order += "second ";
        loop.remove_signal(second);
    });
    loop.future_tick([] { std::raise(SIGUSR1); });
    CHECK_THROWS_WITH(loop.run(), "first");
    CHECK(order == "first ");
    loop.run();
    CHECK(order == "first second ");
}
