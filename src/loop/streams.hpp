#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vigil/core/function.hpp>

#include "loop/callbacks.hpp"
#include "loop/uv_handle.hpp"

namespace vigil {

/// The read and write listeners of file descriptors: one watcher per fd serves both.
///
/// Invariants: a watcher has at least one listener; its uv_poll_t, if it has one, watches for exactly those there are;
/// one without (always ready) is counted in always_ready_.
class Streams {
   public:
    enum class Direction { read, write };

    Streams(uv_loop_t* loop, Callbacks& callbacks);
    ~Streams();
    Streams(const Streams&) = delete;
    Streams& operator=(const Streams&) = delete;

    void add(int fd, Direction direction, Function<void(int)> callback);
    void remove(int fd, Direction direction);
    void clear() noexcept;
    [[nodiscard]] bool empty() const noexcept { return watchers_.empty(); }

    /// Files that cannot be polled: ready in every turn.
    [[nodiscard]] bool any_always_ready() const noexcept { return always_ready_ > 0; }
    void call_always_ready();

   private:
    struct Watcher;

    void ready(const Watcher& watcher, bool readable, bool writable) noexcept;
    static void on_event(uv_poll_t* handle, int status, int events);

    uv_loop_t* loop_;
    Callbacks& callbacks_;
    std::unordered_map<int, std::unique_ptr<Watcher>> watchers_;
    std::size_t always_ready_ = 0;
};

}  // namespace vigil
