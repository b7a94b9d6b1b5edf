#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "loop/pipe.hpp"
#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

// A loop that the embedder runs hands exceptions to on_error: the last test. In all other ways they come out of run().
using Rethrowing = std::tuple<OwnLoop, BorrowedLoop, ForeignPoll>;

TEMPLATE_LIST_TEST_CASE("After an exception no callback runs in that turn, and what was due stays due", "",
                        Rethrowing) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    note_when_readable(way.loop, pipe, order);
    way.loop.add_timer(0ms, [&] { order += "timer "; });
    way.loop.future_tick([&] { order += "tick1 "; });
    way.loop.future_tick([&] { throw std::runtime_error("boom"); });
    way.loop.future_tick([&] { order += "tick2 "; });
    CHECK_THROWS_WITH(way.run(), "boom");
    CHECK(order == "tick1 ");
    way.run();
    CHECK(order == "tick1 tick2 timer io ");
}

TEMPLATE_LIST_TEST_CASE("An exception of a timer leaves the other timers, and of a periodic one itself", "",
                        Rethrowing) {
    TestType way;
    int rounds = 0;
    bool other = false;
    vigil::TimerId timer{};
    timer = way.loop.add_periodic_timer(1ms, [&] {
        if (++rounds == 1) throw std::runtime_error("first round");
        if (rounds == 3) way.loop.cancel_timer(timer);
    });
    way.loop.add_timer(1ms, [&] { other = true; });
    CHECK_THROWS_WITH(way.run(), "first round");
    way.run();
    CHECK(rounds == 3);
    CHECK(other);
}

TEMPLATE_LIST_TEST_CASE("An exception of a stream leaves the other streams", "", Rethrowing) {
    TestType way;
    Pipe first, second;
    first.write("x");
    second.write("x");
    int called = 0;
    for (const Pipe* pipe : {&first, &second}) {
        way.loop.add_read_stream(pipe->reader(), [&](int fd) {
            way.loop.remove_read_stream(fd);
            if (++called == 1) throw std::runtime_error("stream");
        });
    }
    CHECK_THROWS_WITH(way.run(), "stream");
    CHECK(called == 1);
    way.run();
    CHECK(called == 2);
}

TEMPLATE_LIST_TEST_CASE("An exception comes out at once, whatever the loop waits for", "", Rethrowing) {
    TestType way;
    way.loop.add_timer(1h, [] { FAIL(); });
    way.loop.add_timer(1ms, [] { throw std::runtime_error("at once"); });
    for (const auto end = way.loop.now() + 3ms; way.loop.now() < end;) {
    }
    CHECK_THROWS_WITH(way.run(), "at once");
}

TEMPLATE_LIST_TEST_CASE("An exception of a post comes out of run()", "", Rethrowing) {
    TestType way;
    bool second = false;
    way.loop.post([] { throw 42; });
    way.loop.post([&] { second = true; });
    CHECK_THROWS_AS(way.run(), int);
    CHECK_FALSE(second);
    way.run();
    CHECK(second);
}

TEST_CASE("advance() rethrows, and time stands where it was thrown") {
    auto loop = vigil::Loop::with_virtual_time();
    bool later = false;
    loop.add_timer(10ms, [] { throw std::runtime_error("at 10 ms"); });
    loop.add_timer(20ms, [&] { later = true; });
    CHECK_THROWS_WITH(loop.advance(1s), "at 10 ms");
    CHECK(loop.now() == vigil::TimePoint{10ms});
    loop.advance(10ms);
    CHECK(later);
}

TEST_CASE("When the embedder runs his loop, on_error gets each exception and the loop goes on with the next turn") {
    EmbedderRuns way;
    std::string order;
    way.loop.on_error([&](const std::exception_ptr& error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::runtime_error& thrown) {
            order += thrown.what();
        }
    });
    way.loop.future_tick([] { throw std::runtime_error("one "); });
    way.loop.future_tick([] { throw std::runtime_error("two "); });
    way.loop.add_timer(0ms, [&] { order += "timer "; });
    way.run();
    CHECK(order == "one two timer ");
}

TEST_CASE("Without on_error an exception on a loop that the embedder runs ends the program") {
    const pid_t child = fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        std::freopen("/dev/null", "w", stderr);
        EmbedderRuns way;
        way.loop.future_tick([] { throw std::runtime_error("nobody listens"); });
        way.run();
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGABRT);
}

TEST_CASE("on_error may be replaced by the handler itself") {
    EmbedderRuns way;
    std::string order;
    way.loop.on_error([&](const std::exception_ptr&) {
        way.loop.on_error([&](const std::exception_ptr&) { order += "second "; });
        order += "first ";
    });
    for (int each = 0; each < 3; ++each) way.loop.future_tick([] { throw 1; });
    way.run();
    CHECK(order == "first second second ");
}
