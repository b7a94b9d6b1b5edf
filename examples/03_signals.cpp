// examples/03_signals.cpp
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Ctrl-C ends the work in hand and then the program; a second Ctrl-C ends it at once.
int main() {
    vigil::Loop loop;

    const auto work = loop.add_periodic_timer(1s, [] { std::cout << "working" << std::endl; });

    int interrupts = 0;
    vigil::SignalId listener{};
    listener = loop.add_signal(SIGINT, [&](int) {
        if (++interrupts == 2) {
            std::cout << "at once, then" << std::endl;
            loop.stop();
            return;
        }
        std::cout << "finishing, interrupt again to stop at once" << std::endl;
        loop.cancel_timer(work);
        loop.add_timer(3s, [&] {
            std::cout << "finished" << std::endl;
            loop.remove_signal(listener);  // with the last listener gone, run() has nothing left to do
        });
    });

    std::cout << "press Ctrl-C (or: kill -INT " << getpid() << ")" << std::endl;
    loop.run();
}
