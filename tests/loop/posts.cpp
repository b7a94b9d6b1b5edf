#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

TEMPLATE_LIST_TEST_CASE("Posts from several threads all run, those of one thread in order", "", EveryWay) {
    TestType way;
    constexpr int threads = 4, posts = 5'000;
    std::vector<int> next(threads, 0);
    int ran = 0, out_of_order = 0;
    const auto loop_thread = std::this_thread::get_id();
    const auto waiting = way.loop.add_timer(1h, [] { FAIL(); });
    std::vector<std::thread> workers;
    for (int worker = 0; worker < threads; ++worker) {
        workers.emplace_back([&, worker] {
            for (int post = 0; post < posts; ++post) {
                way.loop.post([&, worker, post] {
                    auto& expected = next[static_cast<std::size_t>(worker)];
                    out_of_order += post != expected || std::this_thread::get_id() != loop_thread;
                    ++expected;
                    if (++ran == threads * posts) way.loop.cancel_timer(waiting);
                });
            }
        });
    }
    way.run();
    for (auto& worker : workers) worker.join();
    CHECK(ran == threads * posts);
    CHECK(out_of_order == 0);
}

TEST_CASE("A post made before run() is run, although nothing else is to do") {
    vigil::Loop loop;
    bool ran = false;
    loop.post([&] { ran = true; });
    loop.run();
    CHECK(ran);
}

TEST_CASE("A post wakes a sleeping loop") {
    vigil::Loop loop;
    loop.add_timer(1h, [] { FAIL(); });
    std::thread other([&] {
        std::this_thread::sleep_for(5ms);
        loop.post([&] { loop.stop(); });
    });
    loop.run();
    other.join();
}

TEST_CASE("A post made by a post runs in a later turn") {
    vigil::Loop loop;
    std::string order;
    loop.post([&] {
        order += "a ";
        loop.post([&] { order += "c "; });
        loop.future_tick([&] { order += "b "; });
    });
    loop.run();
    CHECK(order.substr(0, 2) == "a ");
    CHECK(order.size() == 6);
}
