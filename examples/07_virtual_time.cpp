// examples/07_virtual_time.cpp
#include <cstdlib>
#include <iostream>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Code that is given a Loop can be tested without waiting: a reminder after one day and another after three, unless
// the invoice is paid.
class Reminder {
   public:
    Reminder(vigil::Loop& loop, int& sent) : loop_(loop) {
        first_ = loop.add_timer(std::chrono::days(1), [&sent] { ++sent; });
        second_ = loop.add_timer(std::chrono::days(3), [&sent] { ++sent; });
    }
    void paid() {
        loop_.cancel_timer(first_);
        loop_.cancel_timer(second_);
    }

   private:
    vigil::Loop& loop_;
    vigil::TimerId first_, second_;
};

int main() {
    auto loop = vigil::Loop::with_virtual_time();
    const auto check = [](bool holds, const char* claim) {
        std::cout << (holds ? "ok: " : "WRONG: ") << claim << std::endl;
        if (!holds) std::exit(1);
    };

    int sent = 0;
    Reminder reminder(loop, sent);
    loop.advance(24h - 1us);
    check(sent == 0, "nothing is sent before its time, not by a microsecond");
    loop.advance(1us);
    check(sent == 1, "the first reminder goes out after a day");
    reminder.paid();
    loop.advance(std::chrono::years(100));
    check(sent == 1, "who has paid is left in peace, for a hundred years");
}
