#include <catch2/catch.hpp>
#include <string>

#include "loop/pipe.hpp"
#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

TEMPLATE_LIST_TEST_CASE("Ticks run in order of arrival", "", EveryWay) {
    TestType way;
    std::string order;
    for (char name = 'a'; name <= 'j'; ++name) way.loop.future_tick([&, name] { order += name; });
    way.run();
    CHECK(order == "abcdefghij");
}

TEMPLATE_LIST_TEST_CASE("Ticks run before timers and I/O", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    note_when_readable(way.loop, pipe, order);
    way.loop.add_timer(0ms, [&] { order += "timer "; });
    way.loop.future_tick([&] { order += "tick "; });
    way.run();
    CHECK(order == "tick timer io ");
}

TEMPLATE_LIST_TEST_CASE("A tick that a due timer's turn finds waiting runs before that timer", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    // The I/O callback runs at the end of its turn; by the next one the timer is due as well.
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        way.loop.remove_read_stream(fd);
        way.loop.add_timer(1ms, [&] { order += "timer "; });
        way.loop.future_tick([&] { order += "tick "; });
        for (const auto end = way.loop.now() + 3ms; way.loop.now() < end;) {
        }
    });
    way.run();
    CHECK(order == "tick timer ");
}

TEMPLATE_LIST_TEST_CASE("A tick added by a tick runs in the next turn", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    note_when_readable(way.loop, pipe, order);
    way.loop.future_tick([&] {
        order += "first ";
        way.loop.future_tick([&] { order += "second "; });
    });
    way.run();
    CHECK(order == "first io second ");
}

TEMPLATE_LIST_TEST_CASE("A tick added by a timer runs in the next turn, after the I/O of this one", "", EveryWay) {
    TestType way;
    Pipe pipe;
    std::string order;
    note_when_readable(way.loop, pipe, order);
    way.loop.add_timer(2ms, [&] {
        order += "timer ";
        pipe.write("x");
        way.loop.future_tick([&] { order += "tick "; });
    });
    way.run();
    CHECK(order == "timer io tick ");
}

TEMPLATE_LIST_TEST_CASE("An endless chain of ticks starves neither timers nor I/O", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    bool timer = false, readable = false;
    int ticks = 0;
    vigil::Function<void()> again = [&] {
        if (++ticks < 1'000'000 && !(timer && readable)) way.loop.future_tick([&] { again(); });
    };
    way.loop.future_tick([&] { again(); });
    way.loop.add_timer(2ms, [&] { timer = true; });
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        readable = true;
        way.loop.remove_read_stream(fd);
    });
    way.run();
    CHECK(timer);
    CHECK(readable);
    CHECK(ticks < 1'000'000);
}
