#include <catch2/catch.hpp>
#include <chrono>
#include <stdexcept>
#include <string>

#include "loop/pipe.hpp"
#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;
using Clock = std::chrono::steady_clock;

TEST_CASE("On a borrowed loop the embedder's handles live beside ours, and outlive our Loop") {
    UvLoopForTest his;
    int his_rounds = 0, ours = 0;
    uv_timer_t timer;
    uv_timer_init(&his.uv, &timer);
    timer.data = &his_rounds;
    uv_timer_start(
        &timer,
        [](uv_timer_t* handle) {
            if (++*static_cast<int*>(handle->data) == 5) uv_close(reinterpret_cast<uv_handle_t*>(handle), nullptr);
        },
        1, 1);
    {
        vigil::Loop loop(&his.uv);
        loop.add_timer(1ms, [&] { ++ours; });
        loop.future_tick([&] { ++ours; });
        while (ours < 2) uv_run(&his.uv, UV_RUN_ONCE);
        loop.add_timer(1h, [] { FAIL(); });
    }
    CHECK(uv_is_closing(reinterpret_cast<uv_handle_t*>(&timer)) == 0);
    uv_run(&his.uv, UV_RUN_DEFAULT);  // does not wait for our timer of an hour
    CHECK(his_rounds == 5);
}

TEST_CASE("stop() does not stop a loop that the embedder runs") {
    EmbedderRuns way;
    int ran = 0;
    way.loop.future_tick([&] { way.loop.stop(); });
    way.loop.add_timer(2ms, [&] { ++ran; });
    way.run();
    CHECK(ran == 1);
}

TEST_CASE("Two Loops may share one borrowed loop") {
    UvLoopForTest his;
    vigil::Loop first(&his.uv), second(&his.uv);
    std::string order;
    first.add_timer(1ms, [&] { order += 'a'; });
    second.add_timer(3ms, [&] { order += 'b'; });
    first.add_timer(6ms, [&] { order += 'c'; });
    uv_run(&his.uv, UV_RUN_DEFAULT);
    CHECK(order.size() == 3);
    CHECK(order.find('a') < order.find('c'));  // each loop keeps its order
    CHECK(order.find('b') != std::string::npos);
}

TEST_CASE("A borrowed loop must not be null") { CHECK_THROWS_AS(vigil::Loop(nullptr), std::invalid_argument); }

TEST_CASE("backend_timeout() is 0 for what is to be done now, the wait for timers, and for ever for nothing") {
    vigil::Loop loop;
    Pipe pipe;
    CHECK_FALSE(loop.backend_timeout());
    const auto timer = loop.add_timer(50ms, [] {});
    loop.run_nowait();
    CHECK(*loop.backend_timeout() > 0ms);
    CHECK(*loop.backend_timeout() <= 51ms);
    loop.future_tick([] {});
    CHECK(*loop.backend_timeout() == 0ms);
    loop.run_nowait();
    loop.cancel_timer(timer);
    loop.add_read_stream(pipe.reader(), [](int) {});
    CHECK(*loop.backend_timeout() == 0ms);  // the new watcher is yet to be told to the system
    loop.run_nowait();
    CHECK_FALSE(loop.backend_timeout());
}

TEST_CASE("backend_timeout() counts from the real now, however long ago the loop was run") {
    vigil::Loop loop;
    loop.add_timer(20ms, [] {});
    loop.run_nowait();
    for (const auto end = Clock::now() + 15ms; Clock::now() < end;) {
    }
    CHECK(*loop.backend_timeout() <= 6ms);
}

TEST_CASE("backend_fd() becomes readable for a stream and for a post") {
    vigil::Loop loop;
    Pipe pipe;
    const auto readable = [&] {
        pollfd ready{loop.backend_fd(), POLLIN, 0};
        return poll(&ready, 1, 1000) == 1;
    };
    int called = 0;
    loop.add_read_stream(pipe.reader(), [&](int fd) {
        ++called;
        loop.remove_read_stream(fd);
    });
    loop.run_nowait();
    pipe.write("x");
    CHECK(readable());
    loop.run_nowait();
    CHECK(called == 1);
    loop.run_nowait();
    loop.post([&] { ++called; });
    CHECK(readable());
    loop.run_nowait();
    CHECK(called == 2);
}
