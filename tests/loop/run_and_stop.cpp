#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "loop/pipe.hpp"
#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

using RunByUs = std::tuple<OwnLoop, BorrowedLoop>;

TEMPLATE_LIST_TEST_CASE("The loop ends when nothing is left to do, and may be run again", "", EveryWay) {
    TestType way;
    int ran = 0;
    way.run();
    way.loop.future_tick([&] { ++ran; });
    way.loop.add_timer(1ms, [&] { ++ran; });
    way.run();
    CHECK(ran == 2);
    way.loop.add_timer(1ms, [&] { ++ran; });
    way.run();
    CHECK(ran == 3);
}

TEMPLATE_LIST_TEST_CASE("stop() before run() does not prevent the next run()", "", EveryWay) {
    TestType way;
    bool ran = false;
    way.loop.stop();
    way.loop.add_timer(1ms, [&] { ran = true; });
    way.run();
    CHECK(ran);
}

TEMPLATE_LIST_TEST_CASE("stop() lets the current turn end, without waiting, and run() goes on later", "", RunByUs) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    way.loop.add_timer(1h, [] { FAIL(); });
    note_when_readable(way.loop, pipe, order);
    way.loop.future_tick([&] {
        order += "tick ";
        way.loop.stop();
        way.loop.future_tick([&] {
            order += "next turn ";
            way.loop.stop();
        });
    });
    way.loop.future_tick([&] { order += "same turn "; });
    way.run();
    CHECK(order == "tick same turn io ");
    way.run();
    CHECK(order == "tick same turn io next turn ");
}

TEMPLATE_LIST_TEST_CASE("stop() from a timer and from a stream ends run()", "", RunByUs) {
    TestType way;
    Pipe pipe;
    way.loop.add_timer(1h, [] { FAIL(); });
    way.loop.add_timer(1ms, [&] { way.loop.stop(); });
    way.run();
    pipe.write("x");
    way.loop.add_read_stream(pipe.reader(), [&](int) { way.loop.stop(); });
    way.run();
    CHECK(way.loop.run_nowait());
}

TEMPLATE_LIST_TEST_CASE("stop() from a timer that was due before run() does not wait for the next event", "", RunByUs) {
    TestType way;
    way.loop.add_timer(1h, [] { FAIL(); });
    way.loop.add_timer(1ms, [&] { way.loop.stop(); });
    for (const auto end = way.loop.now() + 3ms; way.loop.now() < end;) {
    }
    way.run();
    CHECK(way.loop.run_nowait());
}

TEMPLATE_LIST_TEST_CASE("stop() from a stream keeps the next turn from beginning", "", RunByUs) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    way.loop.add_timer(1ms, [&] { order += "timer "; });
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        way.loop.remove_read_stream(fd);
        way.loop.stop();
        way.loop.future_tick([&] { order += "tick "; });
        for (const auto end = way.loop.now() + 5ms; way.loop.now() < end;) {  // the timer falls due meanwhile
        }
    });
    way.run();
    CHECK(order.empty());
    way.run();
    CHECK(order == "tick timer ");
}

TEMPLATE_LIST_TEST_CASE("stop() from a timer lets the I/O of its turn run", "", RunByUs) {
    TestType way;
    Pipe pipe;
    bool readable = false;
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        readable = true;
        way.loop.remove_read_stream(fd);
    });
    way.loop.add_timer(3ms, [&] {
        pipe.write("x");
        way.loop.stop();
    });
    way.run();
    CHECK(readable);
}

TEMPLATE_LIST_TEST_CASE("Running the loop inside of a callback is a clear error", "", EveryWay) {
    TestType way;
    int refused = 0;
    way.loop.future_tick([&] {
        const auto refuses = [&](auto run) {
            try {
                run();
            } catch (const std::logic_error& error) {
                refused += std::string(error.what()).find("cannot be run from a callback") != std::string::npos;
            }
        };
        refuses([&] { way.loop.run(); });
        refuses([&] { way.loop.run_once(); });
        refuses([&] { way.loop.run_nowait(); });
    });
    way.run();
    CHECK(refused == 3);
}

TEMPLATE_LIST_TEST_CASE("run_once() takes one turn, run_nowait() does not wait, both say if anything is left", "",
                        RunByUs) {
    TestType way;
    CHECK_FALSE(way.loop.run_once());
    CHECK_FALSE(way.loop.run_nowait());
    int ran = 0;
    way.loop.add_timer(5ms, [&] { ++ran; });
    CHECK(way.loop.run_nowait());
    CHECK(ran == 0);
    while (way.loop.run_once()) {
    }
    CHECK(ran == 1);
    way.loop.future_tick([&] {
        ++ran;
        way.loop.future_tick([&] { ++ran; });
    });
    CHECK(way.loop.run_once());
    CHECK(ran == 2);
    CHECK_FALSE(way.loop.run_once());
    CHECK(ran == 3);
}

TEST_CASE("A loop that is destroyed drops what is pending, whatever that holds") {
    auto held = std::make_shared<int>();
    Pipe pipe;
    {
        vigil::Loop loop;
        loop.add_timer(1h, [held] {});
        loop.add_periodic_timer(1h, [held] {});
        loop.future_tick([held] {});
        loop.post([held] {});
        loop.add_read_stream(pipe.reader(), [held](int) {});
        loop.add_signal(SIGUSR1, [held](int) {});
        CHECK(held.use_count() == 7);
    }
    CHECK(held.use_count() == 1);
}

TEST_CASE("What is dropped with the loop may still call it") {
    struct Cancels {
        vigil::Loop& loop;
        vigil::TimerId timer;
        ~Cancels() {
            loop.cancel_timer(timer);
            loop.remove_read_stream(0);
        }
    };
    vigil::Loop loop;
    auto cancels = std::make_shared<Cancels>(loop, vigil::TimerId{});
    cancels->timer = loop.add_timer(1h, [cancels] {});
    loop.future_tick([cancels] {});
}
