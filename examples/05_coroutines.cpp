// examples/05_coroutines.cpp
#include <iostream>
#include <stdexcept>
#include <string>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;
using vigil::Async;
using vigil::Loop;

// A request that takes 30 ms, and fails the first two times.
Async<std::string> request(Loop& loop, int& tries) {
    co_await loop.sleep(30ms);
    if (++tries < 3) throw std::runtime_error("no answer");
    co_return "hello";
}

// Retries with a growing pause. Exceptions travel through co_await.
Async<> client(Loop& loop, std::stop_source& stop) {
    int tries = 0;
    for (auto pause = 20ms;; pause *= 2) {
        std::string failure;
        try {
            const std::string answer = co_await request(loop, tries);
            std::cout << "answer: " << answer << std::endl;
            break;
        } catch (const std::runtime_error& error) {
            failure = error.what();
        }
        std::cout << failure << ", again in " << pause.count() << " ms" << std::endl;
        co_await loop.sleep(pause);
    }
    stop.request_stop();
}

// Shows that something happens, until it is told to stop: then the sleep throws vigil::Cancelled.
Async<> spinner(Loop& loop, std::stop_token stop) {
    try {
        for (;;) co_await loop.sleep(25ms, stop);
    } catch (const vigil::Cancelled&) {
        std::cout << "spinner stopped" << std::endl;
    }
}

int main() {
    Loop loop;
    std::stop_source stop;
    loop.spawn(client(loop, stop));
    loop.spawn(spinner(loop, stop.get_token()));
    loop.run();
}
