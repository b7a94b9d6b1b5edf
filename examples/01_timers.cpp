// examples/01_timers.cpp
#include <iostream>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Debounce by hand: a burst of events ends in one action, 200 ms after the last of them.
int main() {
    vigil::Loop loop;

    int events = 0;
    vigil::TimerId quiet{};
    const auto on_event = [&] {
        ++events;
        loop.cancel_timer(quiet);
        quiet = loop.add_timer(200ms, [&] {
            std::cout << "saved once, after " << events << " events" << std::endl;
            loop.stop();
        });
    };

    // Every 50 ms something happens, five times.
    vigil::TimerId burst{};
    burst = loop.add_periodic_timer(50ms, [&] {
        std::cout << "event" << std::endl;
        on_event();
        if (events == 5) loop.cancel_timer(burst);
    });

    loop.future_tick([] { std::cout << "ticks run before timers" << std::endl; });
    loop.add_timer(1h, [] { std::cout << "never: the loop is stopped before" << std::endl; });

    loop.run();
}
