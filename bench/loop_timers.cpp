// One million one-shot timers with random delays, half of them cancelled, on a vigil::Loop and as uv_timer_t.
//
// The workload: time-outs of requests. Each timer is started from one place with a delay of its own; half are cancelled
// in random order before they fire; the others fire in real time. Counted: CPU time per timer, over all three phases.

#include <uv.h>

#include <malloc.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>
#include <vigil/vigil.hpp>

#include "harness.hpp"

namespace {

struct Workload {
    std::vector<std::chrono::milliseconds> delays;
    std::vector<std::uint32_t> cancelled;  // in the order of cancelling
};

struct Phases {
    double fill = 0, cancel = 0, run = 0;  // CPU nanoseconds per timer
    double bytes = 0;                      // per timer, beyond the callback

    [[nodiscard]] double total() const { return fill + cancel + run; }
};

Workload make_workload(std::size_t count, std::int64_t span, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> delay(1, span);
    Workload workload;
    for (std::size_t index = 0; index < count; ++index) workload.delays.emplace_back(delay(random));
    workload.cancelled.resize(count);
    std::iota(workload.cancelled.begin(), workload.cancelled.end(), 0U);
    std::shuffle(workload.cancelled.begin(), workload.cancelled.end(), random);
    workload.cancelled.resize(count / 2);
    return workload;
}

/// What the fired timers report, to be verified.
struct Fired {
    std::uint64_t count = 0;
    std::uint64_t sum = 0;

    void operator()(std::size_t index) {
        ++count;
        sum += index;
    }
    void verify(const Workload& workload) const {
        const std::uint64_t all = workload.delays.size();
        const auto cancelled = std::accumulate(workload.cancelled.begin(), workload.cancelled.end(), std::uint64_t{0});
        bench::verify(count == all - workload.cancelled.size(), "every timer that was not cancelled fired once");
        bench::verify(sum == all * (all - 1) / 2 - cancelled, "no cancelled timer fired");
    }
};

/// Measures what `fill`, `cancel` and `run` cost.
template <class Fill, class Cancel, class Run>
Phases measure(std::size_t count, std::size_t callback_bytes, Fill fill, Cancel cancel, Run run) {
    const auto timers = static_cast<double>(count);
    const auto bytes_before = mallinfo2().uordblks + mallinfo2().hblkhd;
    const double start = bench::cpu_now();
    fill();
    const double filled = bench::cpu_now();
    const auto bytes_after = mallinfo2().uordblks + mallinfo2().hblkhd;
    const double middle = bench::cpu_now();
    cancel();
    const double cancelled = bench::cpu_now();
    run();
    const double end = bench::cpu_now();
    return {(filled - start) / timers, (cancelled - middle) / timers, (end - cancelled) / timers,
            static_cast<double>(bytes_after - bytes_before) / timers - static_cast<double>(callback_bytes)};
}

Phases run_vigil(const Workload& workload) {
    vigil::Loop loop;
    std::vector<vigil::TimerId> timers(workload.delays.size());
    Fired fired;
    const auto phases = measure(
        timers.size(), sizeof(vigil::Function<void()>),
        [&] {
            for (std::size_t index = 0; index < timers.size(); ++index) {
                timers[index] = loop.add_timer(workload.delays[index], [&fired, index] { fired(index); });
            }
        },
        [&] {
            for (const auto index : workload.cancelled) loop.cancel_timer(timers[index]);
        },
        [&] { loop.run(); });
    fired.verify(workload);
    return phases;
}

/// Not measured: that what is measured is exact. On virtual time each timer fires just at its due, those of one due in
/// the order in which they were started; on real time none is early.
void verify_order_and_time(std::int64_t span) {
    const auto workload = make_workload(50'000, span, 0);
    auto virtual_loop = vigil::Loop::with_virtual_time(vigil::VirtualTime::automatic);
    vigil::Loop real_loop;
    std::size_t fired = 0, last = 0, early = 0;
    vigil::TimePoint last_due{};
    bool exact = true;
    for (std::size_t index = 0; index < workload.delays.size(); ++index) {
        const auto delay = workload.delays[index];
        const auto due = virtual_loop.now() + delay;
        virtual_loop.add_timer(delay, [&, due, index] {
            exact = exact && virtual_loop.now() == due && (last_due < due || last < index);
            last_due = due;
            last = index;
            ++fired;
        });
        const auto real_due = real_loop.now() + delay;
        real_loop.add_timer(delay, [&, real_due] { early += real_loop.now() < real_due; });
    }
    virtual_loop.run();
    real_loop.run();
    bench::verify(exact && fired == workload.delays.size(), "timers fire at their dues, in order");
    bench::verify(early == 0, "no timer is early");
}

/// The best that can be done with uv_timer_t: all handles in one block of memory, the callback's state beside them.
Phases run_uv(const Workload& workload) {
    struct Timer {
        uv_timer_t handle;
        Fired* fired;
        std::size_t index;
    };
    uv_loop_t loop;
    uv_loop_init(&loop);
    std::unique_ptr<Timer[]> timers;
    const std::size_t count = workload.delays.size();
    Fired fired;
    const auto phases = measure(
        count, sizeof(Fired*) + sizeof(std::size_t),
        [&] {
            timers = std::make_unique<Timer[]>(count);
            for (std::size_t index = 0; index < count; ++index) {
                Timer& timer = timers[index];
                timer.fired = &fired;
                timer.index = index;
                timer.handle.data = &timer;
                uv_timer_init(&loop, &timer.handle);
                uv_timer_start(
                    &timer.handle,
                    [](uv_timer_t* handle) {
                        const auto* expired = static_cast<Timer*>(handle->data);
                        (*expired->fired)(expired->index);
                    },
                    static_cast<std::uint64_t>(workload.delays[index].count()), 0);
            }
        },
        [&] {
            for (const auto index : workload.cancelled) uv_timer_stop(&timers[index].handle);
        },
        [&] { uv_run(&loop, UV_RUN_DEFAULT); });
    fired.verify(workload);
    for (std::size_t index = 0; index < count; ++index) {
        uv_close(reinterpret_cast<uv_handle_t*>(&timers[index].handle), nullptr);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    return phases;
}

void print(const char* name, const std::vector<Phases>& rounds) {
    const auto median_of = [&](auto member) {
        std::vector<double> values;
        for (const auto& round : rounds) values.push_back(member(round));
        return bench::median(values);
    };
    std::printf("%-14s %8.0f %8.0f %8.0f %8.0f %8.0f\n", name, median_of([](auto& round) { return round.fill; }),
                median_of([](auto& round) { return round.cancel; }), median_of([](auto& round) { return round.run; }),
                median_of([](auto& round) { return round.total(); }),
                median_of([](auto& round) { return round.bytes; }));
}

}  // namespace

int main(int argc, char** argv) {
    bench::Arguments arguments(argc, argv);
    const auto count = static_cast<std::size_t>(arguments.get("--timers", 1'000'000));
    const auto rounds = arguments.get("--rounds", 5);
    const auto span = arguments.get("--span-ms", 1000);
    arguments.done();

    verify_order_and_time(span);
    std::vector<Phases> vigil_rounds, uv_rounds;
    std::vector<double> ratios;
    for (long round = 0; round < rounds; ++round) {
        const auto workload = make_workload(count, span, static_cast<std::uint64_t>(round));
        vigil_rounds.push_back(run_vigil(workload));
        uv_rounds.push_back(run_uv(workload));
        ratios.push_back(uv_rounds.back().total() / vigil_rounds.back().total());
    }
    std::printf("%zu timers, delays of 1 to %ld ms, half cancelled; medians of %ld rounds; CPU ns per timer\n\n", count,
                span, rounds);
    std::printf("%-14s %8s %8s %8s %8s %8s\n", "", "fill", "cancel", "run", "total", "bytes");
    print("vigil::Loop", vigil_rounds);
    print("uv_timer_t", uv_rounds);
    std::printf("\nuv_timer_t / vigil::Loop: %.1f\n", bench::median(ratios));
}
