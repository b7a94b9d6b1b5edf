// examples/06_foreign_loop.cpp
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// A program that has a loop of its own, here of poll(), serves vigil beside its own file descriptors.
int main() {
    vigil::Loop loop;
    loop.add_timer(20ms, [] { std::cout << "a timer" << std::endl; });
    loop.future_tick([] { std::cout << "a tick" << std::endl; });
    std::thread other([&] {
        std::this_thread::sleep_for(50ms);
        loop.post([] { std::cout << "a post from another thread" << std::endl; });
    });

    int own[2];  // what the program itself waits for
    if (pipe(own) != 0) return EXIT_FAILURE;
    loop.add_timer(100ms, [&] { [[maybe_unused]] const auto sent = write(own[1], "x", 1); });

    for (;;) {
        loop.run_nowait();
        const auto timeout = loop.backend_timeout();  // nullopt: nothing but I/O and posts to wait for
        const auto wait = timeout ? std::chrono::ceil<std::chrono::milliseconds>(*timeout) : -1ms;
        pollfd ready[] = {{own[0], POLLIN, 0}, {loop.backend_fd(), POLLIN, 0}};
        poll(ready, 2, static_cast<int>(wait.count()));
        if (ready[0].revents != 0) break;
    }
    std::cout << "the program's own file descriptor" << std::endl;
    other.join();
}
