#pragma once

#include <atomic>
#include <mutex>
#include <vector>
#include <vigil/core/function.hpp>

#include "loop/uv_handle.hpp"

namespace vigil {

/// What other threads handed over. The one part of the loop that is touched by more than one thread, and, by way of a
/// Poster, the one that may outlive it.
class Posts {
   public:
    /// `arrived` is called in the loop's thread, some time after a post into an empty queue.
    Posts(uv_loop_t* loop, Function<void()> arrived);

    /// From any thread. False if the loop is gone: then the callback is dropped.
    bool add(Function<void()>&& callback);

    /// Calls `take(callback)` for each, in the loop's thread.
    template <class Take>
    void take_each(Take&& take) {
        if (!any_.load(std::memory_order_acquire)) return;
        {
            const std::lock_guard lock(mutex_);
            taken_.swap(posted_);
            any_.store(false, std::memory_order_relaxed);
        }
        for (auto& callback : taken_) take(std::move(callback));
        taken_.clear();
    }

    /// The loop is about to go, in its own thread: what comes from now on is refused.
    void close() noexcept;

   private:
    Function<void()> arrived_;
    std::vector<Function<void()>> taken_;  // empty but for its capacity

    std::mutex mutex_;
    UvHandle<uv_async_t> wake_up_;  // none: closed
    std::vector<Function<void()>> posted_;
    std::atomic<bool> any_ = false;
};

}  // namespace vigil
