#include <catch2/catch.hpp>
#include <memory>
#include <string>
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

TEST_CASE("A post made by a post runs in a later turn, in order") {
    vigil::Loop loop;
    std::string order;
    loop.post([&] {
        order += "a ";
        loop.future_tick([&] { order += "b "; });
        loop.post([&] { order += "c "; });
    });
    loop.run();
    CHECK(order == "a b c ");
}

TEST_CASE("Posts wait while the loop is stopped, and run when it goes on") {
    vigil::Loop loop;
    int ran = 0;
    std::thread other([&] {
        for (int each = 0; each < 1000; ++each) loop.post([&] { ++ran; });
    });
    loop.post([&] { loop.stop(); });
    loop.run();
    other.join();
    loop.run();
    CHECK(ran == 1000);
}

TEST_CASE("A Poster may post while its loop is destroyed, and is told when it is gone") {
    for (int round = 0; round < 50; ++round) {
        auto loop = std::make_unique<vigil::Loop>();
        std::vector<std::thread> threads;
        for (int each = 0; each < 2; ++each) {
            threads.emplace_back([&, poster = loop->poster()] {
                while (poster.post([] {})) {
                }
            });
        }
        loop->add_timer(200us, [&] { loop->stop(); });
        loop->run();
        loop.reset();
        for (auto& thread : threads) thread.join();
    }
}

TEST_CASE("What is posted and never run is dropped with the loop") {
    auto held = std::make_shared<int>();
    auto loop = std::make_unique<vigil::Loop>();
    const auto poster = loop->poster();
    CHECK(poster.post([held] {}));
    CHECK(held.use_count() == 2);
    loop.reset();
    CHECK(held.use_count() == 1);
    CHECK_FALSE(poster.post([held] {}));
    CHECK(held.use_count() == 1);
}

TEST_CASE("On a loop that the embedder runs, a post is run once anything else is there to do") {
    EmbedderRuns way;
    bool ran = false;
    way.loop.post([&] { ran = true; });
    way.run();
    way.loop.add_timer(1ms, [] {});
    way.run();
    CHECK(ran);
}
