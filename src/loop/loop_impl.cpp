#include "loop/loop_impl.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

namespace vigil {

namespace {

// What a turn spends on due timers before it looks at I/O again.
constexpr Duration turn_budget = std::chrono::milliseconds{1};
constexpr std::size_t turn_budget_timers = 4096;
constexpr std::size_t timers_between_looks_at_the_clock = 4;

constexpr int turns_at_one_instant = 100'000;

TimePoint next_round(TimePoint due, Duration interval, TimePoint now) noexcept {
    if (interval == Duration::zero()) return now;
    const auto rounds = now < due ? 1 : (now - due) / interval + 1;
    return saturating_add(due, interval * rounds);
}

}  // namespace

/// Held while one of our own functions runs the libuv loop.
class Loop::Impl::Running {
   public:
    explicit Running(Impl& impl, bool stoppable = false) : impl_(impl) {
        if (impl.running_ || impl.callbacks.inside()) {
            throw std::logic_error("the loop is already running: it cannot be run from a callback");
        }
        impl_.running_ = true;
        impl_.stoppable_ = stoppable;
        impl_.turn_begun_ = false;
        impl_.callbacks.keep_for_runner(true);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() {
        impl_.running_ = false;
        impl_.stoppable_ = false;
        impl_.stopping_ = false;
        impl_.callbacks.keep_for_runner(false);
        impl_.arm();
    }

   private:
    Impl& impl_;
};

Loop::Impl::Impl(uv_loop_t* borrowed, std::optional<VirtualTime> virtual_mode)
    : uv(borrowed),
      posts(std::make_shared<Posts>(uv.get(), [this] { take_posts(); })),
      virtual_mode_(virtual_mode),
      timer_(uv.get(), this, "uv_timer_init", uv_timer_init),
      idle_(uv.get(), this, "uv_idle_init", uv_idle_init),
      prepare_(uv.get(), this, "uv_prepare_init", uv_prepare_init),
      check_(uv.get(), this, "uv_check_init", uv_check_init) {
    uv_prepare_start(prepare_.get(), [](uv_prepare_t* handle) { static_cast<Impl*>(handle->data)->arm(); });
    uv_check_start(check_.get(), [](uv_check_t* handle) {
        auto& impl = *static_cast<Impl*>(handle->data);
        impl.turn_begun_ = false;
        impl.callbacks.end_turn();
        impl.update_idle();
    });
    uv_unref(prepare_.base());
    uv_unref(check_.base());
}

/// What is dropped here may, in its destructors, still call the loop: everything is taken out before it is destroyed.
Loop::Impl::~Impl() {
    posts->close();
    spawned.clear();
    const auto ticks = std::exchange(ticks_, {});
    const auto timers = std::exchange(timers_, {});
    streams.clear();
    signals.clear();
    spawned.clear();
}

TimePoint Loop::Impl::now() const noexcept {
    if (virtual_mode_) return virtual_now_;
    return TimePoint{std::chrono::floor<Duration>(std::chrono::steady_clock::now().time_since_epoch())};
}

/// now() is rounded down: one microsecond more keeps what waits for it from being early.
TimePoint Loop::Impl::due_after(TimePoint now, Duration delay) const noexcept {
    return saturating_add(now, virtual_mode_ ? delay : delay + Duration{1});
}

TimerId Loop::Impl::add_timer(Duration delay, Timer&& timer) {
    const TimePoint at = now();
    const TimePoint due = delay > Duration::zero() ? due_after(at, delay) : at;
    const auto handle = timers_.add(at, due, std::move(timer));
    if (due < armed_for_ || virtual_mode_) arm();
    return TimerId{static_cast<std::uint64_t>(handle)};
}

bool Loop::Impl::cancel_timer(TimerId timer) noexcept {
    const auto handle = TimerSet<Timer>::Handle{static_cast<std::uint64_t>(timer)};
    const auto cancelled = timers_.remove(handle);
    if (timers_.empty()) arm();
    return cancelled.has_value();
}

void Loop::Impl::future_tick(Function<void()>&& callback) {
    ticks_.push_back(std::move(callback));
    update_idle();
}

void Loop::Impl::add_stream(int fd, Streams::Direction direction, Function<void(int)> callback) {
    streams.add(fd, direction, std::move(callback));
    update_idle();
}

void Loop::Impl::remove_stream(int fd, Streams::Direction direction) {
    streams.remove(fd, direction);
    update_idle();
}

void Loop::Impl::take_posts() {
    posts->take_each([this](Function<void()>&& posted) { ticks_.push_back(std::move(posted)); });
    update_idle();
}

bool Loop::Impl::anything_due() const noexcept {
    return !ticks_.empty() || timers_are_due_ || signals.any_undelivered();
}

bool Loop::Impl::has_work_now() const noexcept {
    return anything_due() || streams.any_always_ready() || stopping_ || !callbacks.allowed();
}

void Loop::Impl::update_idle() noexcept {
    if (has_work_now()) {
        uv_idle_start(idle_.get(), [](uv_idle_t* handle) { static_cast<Impl*>(handle->data)->begin_turn(); });
    } else {
        uv_idle_stop(idle_.get());
    }
}

/// Makes the libuv loop wake up for the earliest due. Called before every poll, so that the wait counts from the real
/// now: libuv adds it to the time that it has cached, and takes that off again to poll. It counts in whole
/// milliseconds: rounded up. What still comes up early is armed again.
void Loop::Impl::arm() noexcept {
    const auto due = timers_.next_due();
    const auto wait = due ? *due - now() : Duration::zero();
    armed_for_ = due.value_or(TimePoint::max());
    timers_are_due_ = due && wait <= Duration::zero();
    if (!due || timers_are_due_ || virtual_mode_) {
        uv_timer_stop(timer_.get());
    } else {
        const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(wait).count();
        uv_timer_start(
            timer_.get(), [](uv_timer_t* handle) { static_cast<Impl*>(handle->data)->begin_turn(); },
            static_cast<std::uint64_t>(milliseconds), 0);
    }
    update_idle();
}

void Loop::Impl::begin_turn() noexcept {
    if (turn_begun_ || stopping_) return;
    turn_begun_ = true;
    run_ticks();
    run_timers();
    signals.deliver();
    streams.call_always_ready();
    arm();
}

void Loop::Impl::run_ticks() noexcept {
    for (auto left = ticks_.size(); left > 0 && callbacks.allowed(); --left) {
        auto callback = std::move(ticks_.front());
        ticks_.pop_front();
        callbacks.call(callback);
    }
}

void Loop::Impl::run_timers() noexcept {
    if (timers_.empty()) return;
    const TimePoint turn_now = now();
    const auto first_of_next_turn = timers_.next_sequence();
    std::size_t to_sort = turn_budget_timers;
    for (std::size_t ran = 1; ran <= turn_budget_timers && callbacks.allowed(); ++ran) {
        const auto head = timers_.head(turn_now, to_sort);
        if (!head || head->sequence >= first_of_next_turn) return;
        run_timer(*head, turn_now);
        if (ran % timers_between_looks_at_the_clock == 0 && now() - turn_now > turn_budget) return;
    }
}

/// The callback is taken out before it is called: it may cancel its own timer.
void Loop::Impl::run_timer(const TimerSet<Timer>::Head& head, TimePoint turn_now) noexcept {
    if (head.value.interval == Timer::once) {
        Timer timer = timers_.remove(head);
        callbacks.call(timer.callback);
    } else {
        auto callback = std::move(head.value.callback);
        timers_.reschedule(head.handle, turn_now, next_round(head.due, head.value.interval, turn_now));
        callbacks.call(callback);
        if (Timer* still_there = timers_.find(head.handle)) still_there->callback = std::move(callback);
    }
}

bool Loop::Impl::alive() {
    if (uv_loop_alive(uv.get()) != 0) return true;
    take_posts();  // nothing else would make libuv look for them
    return !ticks_.empty() || (virtual_mode_ == VirtualTime::automatic && !timers_.empty());
}

void Loop::Impl::turn(uv_run_mode mode) {
    const bool jumps = virtual_mode_ == VirtualTime::automatic && mode == UV_RUN_ONCE && !timers_.empty();
    if (jumps && !has_work_now()) jump_to_next_due();
    uv_run(uv.get(), has_work_now() ? UV_RUN_NOWAIT : mode);
    callbacks.rethrow();
}

void Loop::Impl::run() {
    const Running running(*this, true);
    while ((!stopping_ || turn_begun_) && alive()) turn(UV_RUN_ONCE);
}

void Loop::Impl::stop() noexcept {
    stopping_ = stoppable_;
    update_idle();
}

bool Loop::Impl::run_turn(uv_run_mode mode) {
    const Running running(*this);
    if (alive()) turn(mode);
    return alive();
}

std::optional<Duration> Loop::Impl::backend_timeout() {
    if (!alive()) return std::nullopt;
    arm();
    const int milliseconds = uv_backend_timeout(uv.get());
    if (milliseconds < 0) return std::nullopt;
    return std::chrono::milliseconds{milliseconds};
}

void Loop::Impl::jump_to_next_due() {
    if (!streams.empty() || !signals.empty()) {
        const auto called = callbacks.count();
        turn(UV_RUN_NOWAIT);
        if (callbacks.count() != called) return;
        throw std::logic_error("virtual time cannot jump to the next due while streams or signals are listened to");
    }
    virtual_now_ = *timers_.next_due();
    arm();
}

void Loop::Impl::advance(Duration by) {
    if (!virtual_mode_) throw std::logic_error("advance() is for loops with virtual time");
    const Running running(*this);
    const TimePoint target = saturating_add(virtual_now_, by);
    for (;;) {
        int turns = 0;
        do {
            if (++turns > turns_at_one_instant) {
                throw std::logic_error("advance(): ticks or timers without delay go on for ever, so time cannot move");
            }
            if (alive()) turn(UV_RUN_NOWAIT);
        } while (anything_due());
        const auto next = timers_.next_due();
        if (!next || *next > target) break;
        virtual_now_ = *next;
        arm();
    }
    virtual_now_ = target;
    arm();
}

}  // namespace vigil
