#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

namespace {

/// How often a loop wakes up while `prepare` is all that was done with it, in 300 ms, and then a post stops it.
template <class Prepare>
int wake_ups_after(Prepare prepare) {
    UvLoopForTest uv;
    int wake_ups = 0;
    uv_check_t counter;
    uv_check_init(&uv.uv, &counter);
    counter.data = &wake_ups;
    uv_check_start(&counter, [](uv_check_t* handle) { ++*static_cast<int*>(handle->data); });
    uv_unref(reinterpret_cast<uv_handle_t*>(&counter));
    {
        vigil::Loop loop(&uv.uv);
        prepare(loop);
        std::thread later([&] {
            std::this_thread::sleep_for(300ms);
            loop.post([&] { loop.stop(); });
        });
        loop.run();
        later.join();
    }
    uv_close(reinterpret_cast<uv_handle_t*>(&counter), nullptr);
    return wake_ups;
}

constexpr int for_the_post = 2;  // it arrives, and it runs

}  // namespace

TEST_CASE("A loop that waits for a timer in an hour makes no wake-ups") {
    CHECK(wake_ups_after([](vigil::Loop& loop) { loop.add_timer(1h, [] { FAIL(); }); }) == for_the_post);
}

TEST_CASE("A loop that listens for a signal makes no wake-ups") {
    CHECK(wake_ups_after([](vigil::Loop& loop) { loop.add_signal(SIGUSR1, [](int) { FAIL(); }); }) == for_the_post);
}

TEST_CASE("A loop is not woken up for timers that were cancelled") {
    const auto prepare = [](vigil::Loop& loop) {
        loop.add_timer(1h, [] { FAIL(); });
        for (int each = 1; each <= 20; ++each) loop.cancel_timer(loop.add_timer(each * 10ms, [] { FAIL(); }));
    };
    CHECK(wake_ups_after(prepare) == for_the_post);
}
