#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>
#include <vigil/vigil.hpp>

#include "loop/pipe.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;
using vigil::Loop;
using vigil::TimePoint;
using vigil::VirtualTime;

TEST_CASE("Virtual time stands still until it is advanced, and then stops at each due") {
    auto loop = Loop::with_virtual_time();
    std::vector<vigil::Duration> at;
    for (const auto delay : {3000us, 1us, 2999us, 3000us}) {
        loop.add_timer(delay, [&] { at.push_back(loop.now().time_since_epoch()); });
    }
    loop.run();
    CHECK(at.empty());
    loop.advance(2999us);
    CHECK(at == std::vector<vigil::Duration>{1us, 2999us});
    CHECK(loop.now() == TimePoint{2999us});
    loop.advance(1us);
    CHECK(at.size() == 4);
    loop.advance(1h);
    CHECK(loop.now() == TimePoint{1h + 3ms});
}

TEST_CASE("A timer of three days takes no time at all") {
    auto loop = Loop::with_virtual_time();
    bool ran = false;
    loop.add_timer(std::chrono::days(3), [&] { ran = true; });
    const auto start = std::chrono::steady_clock::now();
    loop.advance(std::chrono::days(3));
    CHECK(std::chrono::steady_clock::now() - start < 10s);
    CHECK(ran);
}

TEST_CASE("Ticks run between the dues, at the time of the timer that queued them") {
    auto loop = Loop::with_virtual_time();
    std::string order;
    loop.add_timer(1ms, [&] {
        order += "a ";
        loop.future_tick([&] {
            order += loop.now() == TimePoint{1ms} ? "b " : "late ";
            loop.future_tick([&] {
                order += loop.now() == TimePoint{1ms} ? "c " : "late ";
                loop.add_timer(500us, [&] { order += "d "; });
            });
        });
    });
    loop.add_timer(2ms, [&] { order += "e "; });
    loop.advance(2ms);
    CHECK(order == "a b c d e ");
}

TEST_CASE("A periodic timer runs at every due that is advanced over") {
    auto loop = Loop::with_virtual_time();
    int rounds = 0;
    loop.add_periodic_timer(1s, [&] { ++rounds; });
    loop.advance(1h);
    CHECK(rounds == 3600);
}

TEST_CASE("What never ends at one instant is an error, not a hang") {
    auto loop = Loop::with_virtual_time();
    const auto timer = loop.add_periodic_timer(0s, [] {});
    CHECK_THROWS_WITH(loop.advance(1ms), Catch::Contains("go on for ever"));
    loop.cancel_timer(timer);
    loop.advance(1ms);
    CHECK(loop.now() == TimePoint{1ms});
}

TEST_CASE("Automatic virtual time jumps to the next due when nothing else is to do") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    std::vector<vigil::Duration> at;
    loop.add_timer(std::chrono::days(365), [&] { at.push_back(loop.now().time_since_epoch()); });
    loop.add_timer(1s, [&] {
        at.push_back(loop.now().time_since_epoch());
        loop.future_tick([&] { loop.add_timer(1s, [&] { at.push_back(loop.now().time_since_epoch()); }); });
    });
    loop.run();
    CHECK(at == std::vector<vigil::Duration>{1s, 2s, std::chrono::days(365)});
}

TEST_CASE("Automatic virtual time refuses to jump while a stream is listened to") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    Pipe pipe;
    bool ran = false;
    loop.add_timer(1s, [&] { ran = true; });
    loop.add_read_stream(pipe.reader(), [](int) {});
    CHECK_THROWS_WITH(loop.run(), Catch::Contains("cannot jump"));
    loop.remove_read_stream(pipe.reader());
    loop.run();
    CHECK(ran);
}

TEST_CASE("Automatic virtual time serves a stream that is ready, and run_once() jumps too") {
    auto loop = Loop::with_virtual_time(VirtualTime::automatic);
    Pipe pipe;
    pipe.write("x");
    std::string order;
    loop.add_timer(1s, [&] { order += "timer "; });
    note_when_readable(loop, pipe, order);
    while (loop.run_once()) {
    }
    CHECK(order == "io timer ");
}

TEST_CASE("A timer without delay runs whatever was cancelled before it") {
    auto loop = Loop::with_virtual_time();
    const auto cancelled = loop.add_timer(5ms, [] { FAIL(); });
    loop.add_timer(10ms, [] {});
    loop.cancel_timer(cancelled);
    loop.advance(6ms);
    bool ran = false;
    loop.add_timer(0ms, [&] { ran = true; });
    loop.run();
    CHECK(ran);
}

TEST_CASE("A file that is always ready does not keep time from being advanced") {
    auto loop = Loop::with_virtual_time();
    const int null = ::open("/dev/null", O_RDONLY);
    int calls = 0, rounds = 0;
    loop.add_read_stream(null, [&](int) { ++calls; });
    loop.add_periodic_timer(1s, [&] { ++rounds; });
    loop.advance(10s);
    CHECK(rounds == 10);
    CHECK(calls >= 10);
    loop.remove_read_stream(null);
    ::close(null);
}

TEST_CASE("Streams and posts work under virtual time") {
    auto loop = Loop::with_virtual_time();
    Pipe pipe;
    std::string order;
    loop.add_read_stream(pipe.reader(), [&](int fd) {
        order += read_some(fd) + " ";
        loop.remove_read_stream(fd);
    });
    loop.add_timer(1s, [&] { pipe.write("io"); });
    loop.add_timer(2s, [&] { order += "timer "; });
    loop.post([&] { order += "post "; });
    loop.advance(3s);
    CHECK(order == "post io timer ");
}

TEST_CASE("stop() in a callback does not keep time from being advanced") {
    auto loop = Loop::with_virtual_time();
    int ran = 0;
    loop.add_timer(1s, [&] {
        ++ran;
        loop.stop();
    });
    loop.add_timer(2s, [&] { ++ran; });
    loop.advance(2s);
    CHECK(ran == 2);
}

TEST_CASE("advance() is refused on a real loop and in a callback") {
    Loop real;
    CHECK_THROWS_AS(real.advance(1s), std::logic_error);
    auto loop = Loop::with_virtual_time();
    loop.add_timer(1s, [&] { loop.advance(1s); });
    CHECK_THROWS_AS(loop.advance(2s), std::logic_error);
}

TEST_CASE("Random timers, cancelled and re-added from callbacks, fire exactly at their dues and in order") {
    Random random;
    CAPTURE(random.seed());
    auto loop = Loop::with_virtual_time();
    struct Expected {
        TimePoint due;
        std::uint64_t started;
        bool operator<(const Expected& other) const {
            return due != other.due ? due < other.due : started < other.started;
        }
    };
    std::vector<std::pair<vigil::TimerId, Expected>> pending;
    Expected last{TimePoint::min(), 0};
    std::uint64_t started = 0, wrong = 0, fired = 0;
    vigil::Function<void()> add = [&] {
        const std::uint64_t scale = random.one_in(10) ? 40'000'000 : random.one_in(2) ? 20'000 : 50;
        const auto delay = vigil::Duration(random.below(scale));
        const Expected expected{loop.now() + delay, started++};
        const auto id = loop.add_timer(delay, [&, expected] {
            wrong += loop.now() != expected.due || expected < last;
            last = expected;
            ++fired;
            if (fired < 200'000) add();
            if (random.one_in(3)) add();
            if (!pending.empty() && random.one_in(3)) {
                std::swap(pending[random.below(pending.size())], pending.back());
                loop.cancel_timer(pending.back().first);
                pending.pop_back();
            }
        });
        pending.emplace_back(id, expected);
        if (pending.size() > 100'000) pending.clear();
    };
    for (int each = 0; each < 5'000; ++each) add();
    while (fired < 200'000) loop.advance(vigil::Duration(random.below(100'000)));
    CHECK(wrong == 0);
}
