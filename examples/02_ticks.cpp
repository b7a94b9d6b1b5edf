// examples/02_ticks.cpp
#include <iostream>
#include <numeric>
#include <vector>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// A long computation, cut into ticks: each takes a piece of the work and queues the next, and the timers in between
// are on time. Ticks run in order, before timers and I/O; those that a tick adds run in the next turn.
int main() {
    vigil::Loop loop;

    std::vector<int> numbers(20'000'000, 1);
    std::size_t done = 0;
    long sum = 0;
    vigil::Function<void()> work;
    work = [&] {
        const auto piece = std::min<std::size_t>(100'000, numbers.size() - done);
        const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(done);
        sum = std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(piece), sum);
        done += piece;
        if (done < numbers.size()) loop.future_tick([&] { work(); });
    };
    loop.future_tick([&] { work(); });

    int rounds = 0;
    const auto beat = loop.add_periodic_timer(1ms, [&] {
        if (++rounds == 1) std::cout << "timers run while the work goes on" << std::endl;
    });

    vigil::TimerId watch{};
    watch = loop.add_periodic_timer(0ms, [&] {  // interval 0: once per turn
        if (done < numbers.size()) return;
        std::cout << "sum: " << sum << std::endl;
        loop.cancel_timer(beat);
        loop.cancel_timer(watch);
    });

    loop.run();
}
