// Ticks beside uv_idle, and posts beside uv_async.
//
// chain: each tick queues the next, one per turn, so this is the cost of a turn; beside an active uv_idle, whose
// callback also runs once per turn. bulk: all ticks queued at once, then run; beside the same. posts: one thread posts,
// the loop's thread runs them all; beside uv_async_send() with a queue under a mutex, which a program with libuv alone
// would have to write.
//
// Counted: operations per second of CPU time, of both threads. Each variant verifies how often its callback ran.

#include <uv.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>
#include <vigil/vigil.hpp>

#include "harness.hpp"

namespace {

using Variant = double (*)(std::uint64_t count);  // gives operations per second

double per_second(std::uint64_t count, double start) {
    return static_cast<double>(count) * 1e9 / (bench::cpu_now() - start);
}

double tick_chain(std::uint64_t count) {
    vigil::Loop loop;
    std::uint64_t ran = 0;
    struct Next {
        vigil::Loop& loop;
        std::uint64_t &ran, count;
        void operator()() const {
            if (++ran < count) loop.future_tick(*this);
        }
    };
    const double start = bench::cpu_now();
    loop.future_tick(Next{loop, ran, count});
    loop.run();
    bench::verify(ran == count, "every tick of the chain ran once");
    return per_second(count, start);
}

double uv_idle_turns(std::uint64_t count) {
    uv_loop_t loop;
    uv_loop_init(&loop);
    struct State {
        std::uint64_t ran, count;
    } state{0, count};
    uv_idle_t idle;
    uv_idle_init(&loop, &idle);
    idle.data = &state;
    const double start = bench::cpu_now();
    uv_idle_start(&idle, [](uv_idle_t* handle) {
        auto& counted = *static_cast<State*>(handle->data);
        if (++counted.ran == counted.count) uv_close(reinterpret_cast<uv_handle_t*>(handle), nullptr);
    });
    uv_run(&loop, UV_RUN_DEFAULT);
    bench::verify(state.ran == count && uv_loop_close(&loop) == 0, "the idle callback ran once per turn");
    return per_second(count, start);
}

double tick_bulk(std::uint64_t count) {
    vigil::Loop loop;
    std::uint64_t ran = 0;
    const double start = bench::cpu_now();
    for (std::uint64_t each = 0; each < count; ++each) loop.future_tick([&ran] { ++ran; });
    loop.run();
    bench::verify(ran == count, "every tick ran once");
    return per_second(count, start);
}

double posts(std::uint64_t count) {
    struct State {
        vigil::Loop loop;
        std::uint64_t ran = 0, count = 0;
        vigil::TimerId until_done{};
        void run_one() {
            if (++ran == count) loop.cancel_timer(until_done);
        }
    } state;
    state.count = count;
    state.until_done = state.loop.add_timer(std::chrono::hours(1), [] {});
    const double start = bench::cpu_now();
    std::thread poster([&state, count] {
        for (std::uint64_t each = 0; each < count; ++each) state.loop.post([&state] { state.run_one(); });
    });
    state.loop.run();
    poster.join();
    bench::verify(state.ran == count, "every post ran once");
    return per_second(count, start);
}

double uv_async_posts(std::uint64_t count) {
    struct State {
        uv_async_t async{};
        std::mutex mutex;
        std::vector<std::function<void()>> queue;
        std::uint64_t ran = 0, count = 0;
        void run_one() {
            if (++ran == count) uv_close(reinterpret_cast<uv_handle_t*>(&async), nullptr);
        }
    } state;
    state.count = count;
    uv_loop_t loop;
    uv_loop_init(&loop);
    uv_async_init(&loop, &state.async, [](uv_async_t* handle) {
        auto& shared = *static_cast<State*>(handle->data);
        std::vector<std::function<void()>> taken;
        {
            const std::lock_guard lock(shared.mutex);
            taken.swap(shared.queue);
        }
        for (auto& callback : taken) callback();
    });
    state.async.data = &state;
    const double start = bench::cpu_now();
    std::thread poster([&state, count] {
        for (std::uint64_t each = 0; each < count; ++each) {
            const std::lock_guard lock(state.mutex);
            state.queue.emplace_back([&state] { state.run_one(); });
            uv_async_send(&state.async);
        }
    });
    uv_run(&loop, UV_RUN_DEFAULT);
    poster.join();
    bench::verify(state.ran == count && uv_loop_close(&loop) == 0, "every callback ran once");
    return per_second(count, start);
}

void compare(const char* name, Variant ours, const char* rival_name, Variant rival, std::uint64_t count, long rounds) {
    std::vector<double> our_rates, rival_rates, ratios;
    for (long round = 0; round < rounds; ++round) {
        our_rates.push_back(ours(count));
        rival_rates.push_back(rival(count));
        ratios.push_back(our_rates.back() / rival_rates.back());
    }
    std::printf("%-6s %10.2f M/s   %-18s %8.2f M/s   ratio %.2f\n", name, bench::median(our_rates) / 1e6, rival_name,
                bench::median(rival_rates) / 1e6, bench::median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
    bench::Arguments arguments(argc, argv);
    const auto count = static_cast<std::uint64_t>(arguments.get("--count", 1'000'000));
    const auto rounds = arguments.get("--rounds", 5);
    arguments.done();

    std::printf(
        "%lu operations, medians of %ld rounds; millions per second of CPU time; the ratio is ours / rival's\n\n",
        count, rounds);
    compare("chain", tick_chain, "uv_idle", uv_idle_turns, count, rounds);
    compare("bulk", tick_bulk, "uv_idle", uv_idle_turns, count, rounds);
    compare("posts", posts, "uv_async + queue", uv_async_posts, count, rounds);
}
