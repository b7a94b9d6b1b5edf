#pragma once

#include <mutex>
#include <vector>
#include <vigil/core/function.hpp>

#include "loop/uv_handle.hpp"

namespace vigil {

/// What other threads handed over. The one part of the loop that is touched by more than one thread.
class Posts {
   public:
    /// `arrived` is called in the loop's thread, some time after a post into an empty queue.
    Posts(uv_loop_t* loop, Function<void()> arrived);

    void add(Function<void()> callback);                      // thread-safe
    [[nodiscard]] std::vector<Function<void()>> take() noexcept;  // thread-safe

   private:
    Function<void()> arrived_;
    UvHandle<uv_async_t> wake_up_;
    std::mutex mutex_;
    std::vector<Function<void()>> posted_;
};

}  // namespace vigil
