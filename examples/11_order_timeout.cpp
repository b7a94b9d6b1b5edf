// examples/11_order_timeout.cpp
#include <cstdlib>
#include <iostream>
#include <string>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// An order that is not paid within 30 minutes is cancelled. Most are paid, so most time-outs are cancelled: a slot ring
// does that for next to nothing, to the second. On virtual time a test of it takes no time.
class Orders {
   public:
    explicit Orders(vigil::Loop& loop)
        : unpaid_(loop, {.tick = 1s, .slots = 3600},
                  [this](const vigil::DueValue<std::string>& order) { cancelled += order.value + " "; }) {}

    using Timeout = vigil::loop::SlotRing<std::string>::Handle;
    Timeout place(std::string order) { return unpaid_.put(std::move(order), 30min); }
    bool pay(Timeout timeout) { return unpaid_.cancel(timeout).has_value(); }

    std::string cancelled;

   private:
    vigil::loop::SlotRing<std::string> unpaid_;
};

int main() {
    auto loop = vigil::Loop::with_virtual_time();
    const auto check = [](bool holds, const char* claim) {
        std::cout << (holds ? "ok: " : "WRONG: ") << claim << std::endl;
        if (!holds) std::exit(1);
    };

    Orders orders(loop);
    orders.place("order-1");
    const auto second = orders.place("order-2");
    loop.advance(10min);
    const auto third = orders.place("order-3");
    check(orders.pay(second), "order 2 is paid in time");
    loop.advance(20min - 1us);
    check(orders.cancelled.empty(), "nothing is cancelled before its 30 minutes are over");
    loop.advance(1us);
    check(orders.cancelled == "order-1 ", "order 1 is cancelled then");
    loop.advance(10min);
    check(orders.cancelled == "order-1 order-3 ", "order 3 ten minutes later, and order 2 never");
    check(!orders.pay(third), "too late to pay");
}
