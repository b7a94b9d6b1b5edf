// examples/13_delayed_to_destination.cpp
#include <deque>
#include <iostream>
#include <string>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Mails wait for their delay, then move into the outbox, in batches. The outbox holds three: while it is full, what is
// due goes on waiting, in order.
int main() {
    auto loop = vigil::Loop::with_virtual_time(vigil::VirtualTime::automatic);

    std::deque<std::string> outbox;
    vigil::loop::DelayedQueue<std::string> mails(loop, vigil::loop::into(outbox, 3), {.batch = 100});

    mails.offer("reminder", 24h);
    for (int number = 1; number <= 5; ++number) mails.offer("welcome " + std::to_string(number), 10s);
    const auto mistake = mails.offer("mistake", 5s);
    mails.remove(mistake);
    std::cout << "first is: " << mails.peek()->value << std::endl;

    // Two are sent every minute.
    vigil::TimerId sender{};
    sender = loop.add_periodic_timer(1min, [&] {
        for (int sent = 0; sent < 2 && !outbox.empty(); ++sent) {
            std::cout << "send " << outbox.front() << std::endl;
            outbox.pop_front();
        }
        mails.resume();
        if (outbox.empty() && mails.empty()) loop.cancel_timer(sender);
    });

    loop.add_timer(30s,
                   [&] { std::cout << outbox.size() << " in the outbox, " << mails.size() << " wait" << std::endl; });
    loop.run();  // jumps from due to due
}
