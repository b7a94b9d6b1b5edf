#include <catch2/catch.hpp>
#include <stop_token>
#include <thread>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

TEST_CASE("Stop may be requested in another thread while sleepers come and go") {
    for (int round = 0; round < 50; ++round) {
        vigil::Loop loop;
        std::stop_source source;
        int ended = 0;
        auto sleeper = [](vigil::Loop& on, std::stop_token stop, int& count) -> vigil::Async<> {
            try {
                for (;;) co_await on.sleep(100us, stop);
            } catch (const vigil::Cancelled&) {
                ++count;
            }
        };
        for (int each = 0; each < 20; ++each) loop.spawn(sleeper(loop, source.get_token(), ended));
        std::thread other([&] {
            std::this_thread::sleep_for(1ms);
            source.request_stop();
        });
        loop.run();
        other.join();
        CHECK(ended == 20);
    }
}
