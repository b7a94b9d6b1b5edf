#include <catch2/catch.hpp>
#include <thread>

#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

TEST_CASE("A loop that waits for a timer in an hour makes no wake-ups") {
    UvLoopForTest uv;
    int wake_ups = 0;
    uv_check_t counter;
    uv_check_init(&uv.uv, &counter);
    counter.data = &wake_ups;
    uv_check_start(&counter, [](uv_check_t* handle) { ++*static_cast<int*>(handle->data); });
    uv_unref(reinterpret_cast<uv_handle_t*>(&counter));
    {
        vigil::Loop loop(&uv.uv);
        loop.add_timer(1h, [] { FAIL(); });
        const auto cancelled = loop.add_timer(20ms, [] { FAIL(); });
        loop.add_signal(SIGUSR1, [](int) {});
        loop.cancel_timer(cancelled);  // is not woken up for, either
        std::thread later([&] {
            std::this_thread::sleep_for(300ms);
            loop.post([&] { loop.stop(); });
        });
        loop.run();
        later.join();
    }
    CHECK(wake_ups <= 3);  // the first look, the post, the turn that it runs in
    uv_close(reinterpret_cast<uv_handle_t*>(&counter), nullptr);
}
