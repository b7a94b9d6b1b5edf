#pragma once

#include <uv.h>

#include <malloc.h>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>
#include <vigil/queue/slot_ring.hpp>

#include "../harness.hpp"

/// SlotRing and uv_timer_t: one-shot timers with delays of 1 to 1000 ms, half of them cancelled in random order.
namespace bench::ring {

struct Workload {
    std::vector<std::chrono::milliseconds> delays;
    std::vector<std::uint32_t> cancelled;   // in the order of cancelling
    std::uint64_t fired = 0, checksum = 0;  // expected

    Workload(std::size_t count, std::uint64_t seed) : delays(count), cancelled(count) {
        std::mt19937_64 random(seed);
        std::uniform_int_distribution<std::int64_t> delay(1, 1000);
        for (auto& each : delays) each = std::chrono::milliseconds{delay(random)};
        std::iota(cancelled.begin(), cancelled.end(), 0U);
        std::shuffle(cancelled.begin(), cancelled.end(), random);
        cancelled.resize(count / 2);
        fired = count - cancelled.size();
        checksum = std::uint64_t{count} * (count - 1) / 2 -
                   std::accumulate(cancelled.begin(), cancelled.end(), std::uint64_t{0});
    }
};

/// What belongs to a timer, and what it does when it fires.
struct Fired {
    std::uint64_t count = 0, checksum = 0;
    void verify(const Workload& workload) const {
        bench::verify(count == workload.fired, "every timer that was not cancelled fired once");
        bench::verify(checksum == workload.checksum, "no cancelled timer fired");
    }
};
struct Value {
    Fired* fired = nullptr;
    std::uint64_t index = 0;
    void fire() const {
        ++fired->count;
        fired->checksum += index;
    }
};

struct Phases {
    double put = 0, cancel = 0, fire = 0;  // CPU nanoseconds per timer
    double bytes = 0;                      // per timer, beyond the value
    [[nodiscard]] double total() const { return put + cancel + fire; }
};

template <class Put, class Cancel, class Wait, class Fire>
Phases measure(std::size_t count, Put put, Cancel cancel, Wait wait, Fire fire) {
    const auto timers = static_cast<double>(count);
    const auto allocated = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
    const auto bytes_before = allocated();
    const double start = cpu_now();
    put();
    const double filled = cpu_now();
    const auto bytes = static_cast<double>(allocated() - bytes_before) / timers - sizeof(Value);
    const double middle = cpu_now();
    cancel();
    const double cancelled = cpu_now();
    wait();
    const double waited = cpu_now();
    fire();
    const double end = cpu_now();
    return {(filled - start) / timers, (cancelled - middle) / timers, (end - waited) / timers, bytes};
}

/// The clock is virtual, and goes on by a millisecond at a time.
inline Phases run_vigil(const Workload& workload) {
    using Ring = vigil::SlotRing<Value>;
    Ring ring({.tick = std::chrono::milliseconds{1}, .slots = 3600});
    std::vector<Ring::Handle> handles(workload.delays.size());
    Fired fired;
    bool in_order = true;
    vigil::TimePoint now{}, last{};
    const auto phases = measure(
        handles.size(),
        [&] {
            for (std::size_t index = 0; index < handles.size(); ++index) {
                handles[index] = ring.put_after(now, workload.delays[index], {&fired, index});
            }
        },
        [&] {
            for (const auto index : workload.cancelled) ring.cancel(handles[index]);
        },
        [] {},
        [&] {
            for (; !ring.empty(); now += std::chrono::milliseconds{1}) {
                ring.advance(now, std::numeric_limits<std::size_t>::max(), [&](const vigil::DueValue<Value>& due) {
                    in_order = in_order && due.due <= now && last <= due.due;
                    last = due.due;
                    due.value.fire();
                });
            }
        });
    fired.verify(workload);
    bench::verify(in_order, "in order, none early");
    return phases;
}

/// The best that can be done with uv_timer_t: all in one block of memory. The second that they take to fall due is
/// waited for, so that what is measured has no wake-ups.
inline Phases run_uv(const Workload& workload) {
    struct Timer {
        uv_timer_t handle;
        Value value;
    };
    uv_loop_t loop;
    uv_loop_init(&loop);
    std::unique_ptr<Timer[]> timers;
    const std::size_t count = workload.delays.size();
    Fired fired;
    const auto phases = measure(
        count,
        [&] {
            timers = std::make_unique<Timer[]>(count);
            for (std::size_t index = 0; index < count; ++index) {
                Timer& timer = timers[index];
                timer.value = {&fired, index};
                timer.handle.data = &timer;
                uv_timer_init(&loop, &timer.handle);
                uv_timer_start(
                    &timer.handle, [](uv_timer_t* handle) { static_cast<Timer*>(handle->data)->value.fire(); },
                    static_cast<std::uint64_t>(workload.delays[index].count()), 0);
            }
        },
        [&] {
            for (const auto index : workload.cancelled) uv_timer_stop(&timers[index].handle);
        },
        [] { std::this_thread::sleep_for(std::chrono::milliseconds{1001}); }, [&] { uv_run(&loop, UV_RUN_DEFAULT); });
    fired.verify(workload);
    for (std::size_t index = 0; index < count; ++index) {
        uv_close(reinterpret_cast<uv_handle_t*>(&timers[index].handle), nullptr);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return phases;
}

}  // namespace bench::ring
