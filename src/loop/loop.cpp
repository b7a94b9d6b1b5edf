#include <vigil/loop/loop.hpp>

#include <stdexcept>
#include <utility>
#include <vigil/loop/async.hpp>
#include <vigil/loop/driver.hpp>

#include "loop/loop_impl.hpp"

namespace vigil {

namespace {

template <class Callback>
Callback&& not_empty(Callback& callback) {
    if (!callback) throw std::invalid_argument("a callback must not be empty");
    return std::move(callback);
}

}  // namespace

Loop::Loop() : impl_(std::make_unique<Impl>(nullptr, std::nullopt)) {}
Loop::Loop(uv_loop_t* existing) {
    if (existing == nullptr) throw std::invalid_argument("the borrowed loop must not be null");
    impl_ = std::make_unique<Impl>(existing, std::nullopt);
}
Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loop Loop::with_virtual_time(VirtualTime mode) { return Loop(std::make_unique<Impl>(nullptr, mode)); }
Loop::~Loop() = default;

TimerId Loop::add_timer(Delay delay, Function<void()> callback) {
    return impl_->add_timer(delay.value(), {not_empty(callback), Impl::Timer::once});
}
TimerId Loop::add_periodic_timer(Delay interval, Function<void()> callback) {
    return impl_->add_timer(interval.value(), {not_empty(callback), interval.value()});
}
void Loop::reserve_timers(std::size_t count) { impl_->reserve_timers(count); }
bool Loop::cancel_timer(TimerId timer) { return impl_->cancel_timer(timer); }

void Loop::future_tick(Function<void()> callback) { impl_->future_tick(not_empty(callback)); }

void Loop::add_read_stream(int fd, Function<void(int)> callback) {
    impl_->add_stream(fd, Streams::Direction::read, not_empty(callback));
}
void Loop::remove_read_stream(int fd) { impl_->remove_stream(fd, Streams::Direction::read); }
void Loop::add_write_stream(int fd, Function<void(int)> callback) {
    impl_->add_stream(fd, Streams::Direction::write, not_empty(callback));
}
void Loop::remove_write_stream(int fd) { impl_->remove_stream(fd, Streams::Direction::write); }

SignalId Loop::add_signal(int signum, Function<void(int)> callback) {
    return impl_->signals.add(signum, not_empty(callback));
}
void Loop::remove_signal(SignalId listener) { impl_->signals.remove(listener); }

void Loop::run() { impl_->run(); }
void Loop::stop() { impl_->stop(); }
bool Loop::run_once() { return impl_->run_turn(UV_RUN_ONCE); }
bool Loop::run_nowait() { return impl_->run_turn(UV_RUN_NOWAIT); }

int Loop::backend_fd() const { return uv_backend_fd(impl_->uv.get()); }
std::optional<Duration> Loop::backend_timeout() const { return impl_->backend_timeout(); }

void Loop::post(Function<void()> callback) { impl_->posts->add(not_empty(callback)); }
Poster Loop::poster() const { return Poster(impl_->posts); }

TimePoint Loop::now() const { return impl_->now(); }
TimePoint Loop::due_after(Delay delay) const { return impl_->due_after(impl_->now(), delay.value()); }
void Loop::advance(Delay by) { impl_->advance(by.value()); }

void Loop::on_error(Function<void(std::exception_ptr)> handler) { impl_->callbacks.on_error(std::move(handler)); }

Sleep Loop::sleep(Delay delay, std::stop_token stop) { return Sleep(*this, delay, std::move(stop)); }
SpawnId Loop::spawn(Async<void> coroutine) {
    const SpawnId id = impl_->spawned.add(std::move(coroutine));
    impl_->future_tick([impl = impl_.get(), id] { impl->spawned.start(id); });
    return id;
}
bool Loop::cancel_spawn(SpawnId coroutine) { return impl_->spawned.cancel(coroutine); }

Driver& Loop::driver() {
    if (!driver_) driver_ = std::make_unique<Driver>(*this);
    return *driver_;
}

}  // namespace vigil
