#pragma once

#include <poll.h>
#include <uv.h>

#include <cstdlib>
#include <tuple>
#include <vigil/vigil.hpp>

/// The contract of a Loop holds whoever runs it: its tests are run once for each of these.
namespace vigil::testing {

/// vigil's own loop, by run().
class OwnLoop {
   public:
    Loop loop;
    void run() { loop.run(); }
};

/// A libuv loop that outlives the Loop on it.
class UvLoopForTest {
   public:
    UvLoopForTest() { uv_loop_init(&uv); }
    UvLoopForTest(const UvLoopForTest&) = delete;
    UvLoopForTest& operator=(const UvLoopForTest&) = delete;
    ~UvLoopForTest() {
        uv_run(&uv, UV_RUN_DEFAULT);
        if (uv_loop_close(&uv) != 0) std::abort();  // a handle was left behind
    }
    uv_loop_t uv;
};

/// The embedder's loop, by our run().
class BorrowedLoop : private UvLoopForTest {
   public:
    Loop loop{&uv};
    void run() { loop.run(); }
};

/// The embedder's loop, which he runs himself.
class EmbedderRuns : private UvLoopForTest {
   public:
    Loop loop{&uv};
    void run() { uv_run(&uv, UV_RUN_DEFAULT); }
};

/// A foreign loop made of poll().
class ForeignPoll {
   public:
    Loop loop;
    void run() {
        while (loop.run_nowait()) {
            const auto timeout = loop.backend_timeout();
            pollfd ready{loop.backend_fd(), POLLIN, 0};
            poll(&ready, 1,
                 timeout ? static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(*timeout).count()) : -1);
        }
    }
};

using EveryWay = std::tuple<OwnLoop, BorrowedLoop, EmbedderRuns, ForeignPoll>;

}  // namespace vigil::testing
