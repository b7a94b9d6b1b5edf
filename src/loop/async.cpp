#include <utility>
#include <vigil/loop/async.hpp>

namespace vigil {

Sleep::Sleep(Loop& loop, Delay delay, std::stop_token stop) : loop_(loop), delay_(delay), stop_(std::move(stop)) {}

Sleep::~Sleep() {
    on_stop_.reset();
    loop_.cancel_timer(timer_);
}

void Sleep::await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    timer_ = loop_.add_timer(delay_, waiting);
    if (stop_.stop_possible()) on_stop_.emplace(stop_, WakeUp{this});
}

void Sleep::await_resume() const {
    if (stop_.stop_requested()) throw Cancelled{};
}

/// Stop may be requested in any thread, and the sleeper may be gone when the post arrives: as long as its timer is
/// pending it is not.
void Sleep::WakeUp::operator()() const {
    sleep->loop_.post([sleeper = sleep, &loop = sleep->loop_, timer = sleep->timer_] {
        if (loop.cancel_timer(timer)) sleeper->waiting_.resume();
    });
}

}  // namespace vigil
