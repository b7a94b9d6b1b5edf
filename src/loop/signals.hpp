#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>
#include <vigil/core/function.hpp>
#include <vigil/loop/loop.hpp>

#include "loop/callbacks.hpp"
#include "loop/uv_handle.hpp"

namespace vigil {

/// The listeners of signals: one uv_signal_t per signal number serves all of its listeners, in the order in which they
/// were added. A signal that arrives in a turn that has failed is delivered in the next one.
///
/// Invariant: a watcher has at least one listener.
class Signals {
   public:
    Signals(uv_loop_t* loop, Callbacks& callbacks) : loop_(loop), callbacks_(callbacks) {}

    SignalId add(int signum, Function<void(int)> callback);
    void remove(SignalId listener);
    void clear() noexcept;
    [[nodiscard]] bool empty() const noexcept { return watchers_.empty(); }

    [[nodiscard]] bool any_undelivered() const noexcept { return !undelivered_.empty(); }
    void deliver() noexcept;

   private:
    struct Listener {
        SignalId id;
        int signum;
        Function<void(int)> callback;
        bool removed = false;
    };
    // Owned by its watcher, and by undelivered_ or the call in progress, during which it may be removed.
    using Shared = std::shared_ptr<Listener>;

    struct Watcher {
        UvHandle<uv_signal_t> handle;
        std::vector<Shared> listeners;
    };

    uv_loop_t* loop_;
    Callbacks& callbacks_;
    std::map<int, Watcher> watchers_;
    std::deque<Shared> undelivered_;
    std::uint64_t last_id_ = 0;
};

}  // namespace vigil
