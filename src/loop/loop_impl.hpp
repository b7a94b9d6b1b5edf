#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vigil/loop/loop.hpp>
#include <vigil/queue/timer_set.hpp>

#include "loop/callbacks.hpp"
#include "loop/posts.hpp"
#include "loop/signals.hpp"
#include "loop/spawned.hpp"
#include "loop/streams.hpp"
#include "loop/uv_handle.hpp"

namespace vigil {

/// How a turn maps onto an iteration of libuv, which runs: timers, idle, prepare, poll, check.
///
/// One uv_timer stands for the earliest due, and fires in the first phase; an active uv_idle keeps the poll from
/// waiting while there is something to do at once. Whichever of the two comes first begins the turn: ticks, then
/// timers. The streams' uv_poll callbacks follow in the poll phase; check ends the turn. So ticks always come before
/// timers and I/O, whoever runs the libuv loop.
///
/// Invariants, outside of callbacks: the idle handle is active if and only if has_work_now(); if not, and there are
/// timers, and time is real, the uv_timer is active.
struct Loop::Impl {
    struct Timer {
        Function<void()> callback;
        Duration interval;  // `once`, or not negative

        static constexpr Duration once{-1};
    };

    /// `virtual_mode`: none for real time.
    explicit Impl(uv_loop_t* borrowed, std::optional<VirtualTime> virtual_mode);
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl();

    [[nodiscard]] TimePoint now() const noexcept;
    [[nodiscard]] TimePoint due_after(TimePoint now, Duration delay) const noexcept;
    TimerId add_timer(Duration delay, Timer&& timer);
    void reserve_timers(std::size_t count) { timers_.reserve_more(count); }
    bool cancel_timer(TimerId timer) noexcept;
    void future_tick(Function<void()>&& callback);
    void add_stream(int fd, Streams::Direction direction, Function<void(int)> callback);
    void remove_stream(int fd, Streams::Direction direction);

    void run();
    void stop() noexcept;
    bool run_turn(uv_run_mode mode);
    [[nodiscard]] std::optional<Duration> backend_timeout();
    void advance(Duration by);

    UvLoop uv;
    Callbacks callbacks;
    Streams streams{uv.get(), callbacks};
    Signals signals{uv.get(), callbacks};
    std::shared_ptr<Posts> posts;  // owned by the loop and its Posters
    Spawned spawned{callbacks};

   private:
    class Running;

    [[nodiscard]] bool anything_due() const noexcept;
    [[nodiscard]] bool has_work_now() const noexcept;
    /// Starts or stops the idle handle; called wherever has_work_now() may have changed.
    void update_idle() noexcept;
    [[nodiscard]] bool alive();
    void take_posts();
    void begin_turn() noexcept;
    void run_ticks() noexcept;
    void run_timers() noexcept;
    void run_timer(const TimerSet<Timer>::Head& head, TimePoint now) noexcept;
    void arm() noexcept;
    void turn(uv_run_mode mode);
    void jump_to_next_due();

    const std::optional<VirtualTime> virtual_mode_;
    TimePoint virtual_now_{};
    std::deque<Function<void()>> ticks_;
    TimerSet<Timer> timers_;

    UvHandle<uv_timer_t> timer_;
    UvHandle<uv_idle_t> idle_;
    UvHandle<uv_prepare_t> prepare_;
    UvHandle<uv_check_t> check_;

    TimePoint armed_for_ = TimePoint::max();
    bool timers_are_due_ = false;
    bool turn_begun_ = false;
    bool running_ = false;
    bool stoppable_ = false;
    bool stopping_ = false;
};

}  // namespace vigil
