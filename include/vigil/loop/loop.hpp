#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <vigil/core/function.hpp>
#include <vigil/core/time.hpp>

struct uv_loop_s;
using uv_loop_t = uv_loop_s;

namespace vigil {

enum class TimerId : std::uint64_t {};   ///< never given out twice; TimerId{} is no timer
enum class SignalId : std::uint64_t {};  ///< likewise
enum class SpawnId : std::uint64_t {};   ///< likewise

/// How the time of a Loop::with_virtual_time() moves.
enum class VirtualTime {
    manual,     ///< only advance() moves it; pending timers do not keep run() going
    automatic,  ///< run() jumps to the next due when nothing else is left to do
};

class Driver;
class Posts;
class Sleep;
template <class T>
class Async;

/// Posts to a Loop from any thread, also while that loop is being destroyed and afterwards. Cheap to copy.
class Poster {
   public:
    explicit Poster(std::shared_ptr<Posts> posts) noexcept;

    /// As Loop::post(). False if the loop is gone: then the callback is dropped.
    bool post(Function<void()> callback) const;

   private:
    std::shared_ptr<Posts> posts_;  // owned by the loop too, which closes it
};

/// An event loop after ReactPHP's LoopInterface, on libuv: timers, ticks, streams, signals, and post() for other
/// threads.
///
/// A turn runs the ticks that were queued before it, then the timers that are due (at most about a millisecond of them;
/// the rest goes on in the next turn), then what the streams, signals and posts brought. run() takes turns, and sleeps
/// between them, until nothing is left to do: no tick, no timer, no listener.
///
/// Callbacks may do anything but run or destroy the loop: add, cancel, remove themselves or each other. What is
/// cancelled or removed never runs afterwards. If a callback throws, no other user callback runs in that turn, what was
/// due stays due, and run() rethrows the exception; the loop can be run again. On a borrowed loop that the embedder
/// runs himself the exception goes to on_error().
///
/// One thread: only post() may be called from another. The loop must outlive what is bound to it; a Poster need not.
class Loop {
   public:
    /// Owns a libuv loop. Throws std::system_error if the system gives no file descriptors.
    Loop();
    /// Borrows the embedder's loop, which he may run himself with uv_run(); his handles are never touched. The
    /// destructor closes ours; as always with libuv, their memory is freed when he next runs the loop.
    explicit Loop(uv_loop_t* existing);
    /// A loop for tests whose clock stands still until it is moved. Starts at TimePoint{}.
    [[nodiscard]] static Loop with_virtual_time(VirtualTime mode = VirtualTime::manual);
    ~Loop();

    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;

    /// Runs `callback` once, `delay` from now or a little later, never earlier. In order of due, then of start.
    /// A delay of 0 runs it in the next turn.
    TimerId add_timer(Delay delay, Function<void()> callback);
    /// Runs `callback` every `interval`, from due to due: lateness does not add up. Rounds that were missed because
    /// the loop was busy are skipped. An interval of 0 runs it once per turn.
    TimerId add_periodic_timer(Delay interval, Function<void()> callback);
    /// After this the next `count` timers can be added though memory runs out, if their callbacks need none.
    void reserve_timers(std::size_t count);
    /// False if it already ran (and is not periodic) or was cancelled before.
    bool cancel_timer(TimerId timer);

    /// Runs `callback` at the start of the next turn, before timers and I/O, in order of arrival.
    void future_tick(Function<void()> callback);

    /// Calls `callback(fd)` in every turn in which `fd` can be read without waiting, or its peer has hung up. At most
    /// one read listener per fd: a second is a std::logic_error; a bad fd is a std::system_error. Files that cannot be
    /// polled (regular files, /dev/null) are always ready. O_NONBLOCK is set meanwhile and restored by the removal.
    void add_read_stream(int fd, Function<void(int)> callback);
    /// Call this before closing `fd`: libuv aborts when it is told to watch a closed one. Has no effect if there is no
    /// listener.
    void remove_read_stream(int fd);
    /// As add_read_stream(), for writing; both may watch one fd.
    void add_write_stream(int fd, Function<void(int)> callback);
    void remove_write_stream(int fd);

    /// Calls `callback(signum)` when the process gets the signal. A signal may have several listeners, called in the
    /// order in which they were added. Throws std::system_error if the signal cannot be caught.
    SignalId add_signal(int signum, Function<void(int)> callback);
    /// Has no effect on a listener that is already removed.
    void remove_signal(SignalId listener);

    /// Runs until nothing is left to do or stop() is called; may be called again. std::logic_error inside a callback.
    void run();
    /// Makes run() return when the current turn ends. Has no effect on a loop that is not in run().
    void stop();
    /// One turn, waiting for something to happen. True if anything is left to do.
    bool run_once();
    /// One turn without waiting. True if anything is left to do.
    bool run_nowait();

    /// For a foreign loop: call run_nowait() whenever backend_fd() is readable or backend_timeout() has passed. Ask for
    /// the timeout right before waiting; nullopt is "for ever".
    [[nodiscard]] int backend_fd() const;
    [[nodiscard]] std::optional<Duration> backend_timeout() const;

    /// Runs `callback` as a tick, from any thread that the loop outlives (others use a Poster). Those of one thread
    /// keep their order. A post that has arrived is run before run() returns; the chance that one may still come does
    /// not keep it going. (uv_run() on a borrowed loop does not even see that one has arrived, unless something else is
    /// there to do.)
    void post(Function<void()> callback);
    /// For threads that the loop may not outlive.
    [[nodiscard]] Poster poster() const;

    /// The monotonic clock, read at the call; or the virtual time.
    [[nodiscard]] TimePoint now() const;
    /// `delay` from now: once now() has reached this, all of the delay has passed. (now() is rounded down.)
    [[nodiscard]] TimePoint due_after(Delay delay) const;

    /// Virtual time only: moves it on, stopping at each due and running what is due there, with its ticks, before it
    /// goes on. Ticks or timers without delay that go on for ever at one instant are a std::logic_error.
    void advance(Delay by);

    /// What becomes of exceptions when the embedder runs a borrowed loop with uv_run(). Default: std::terminate.
    void on_error(Function<void(std::exception_ptr)> handler);

    /// `co_await loop.sleep(d)`: see vigil/loop/async.hpp. With a stop token it throws Cancelled once stop is
    /// requested.
    [[nodiscard]] Sleep sleep(Delay delay, std::stop_token stop = {});
    /// Starts `coroutine` as a tick; the loop owns it from then on. An exception that leaves it is treated as that of a
    /// callback, except Cancelled, which is a normal end.
    SpawnId spawn(Async<void> coroutine);
    /// Destroys a spawned coroutine where it waits, once the calling callback has returned. False if it has ended. A
    /// coroutine that cancels itself goes on to its next co_await.
    bool cancel_spawn(SpawnId coroutine);

    /// Hands what is due in queues to their sinks: see vigil/loop/driver.hpp. All queues of a
    /// loop share one, and its budget.
    [[nodiscard]] Driver& driver();

   private:
    struct Impl;
    explicit Loop(std::unique_ptr<Impl> impl);

    std::unique_ptr<Impl> impl_;
    std::unique_ptr<Driver> driver_;  // made when it is first needed
};

}  // namespace vigil
