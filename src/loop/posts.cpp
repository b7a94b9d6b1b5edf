#include "loop/posts.hpp"

#include <utility>

namespace vigil {

Posts::Posts(uv_loop_t* loop, Function<void()> arrived)
    : arrived_(std::move(arrived)), wake_up_(loop, this, "uv_async_init", uv_async_init, [](uv_async_t* handle) {
          static_cast<Posts*>(handle->data)->arrived_();
      }) {
    uv_unref(wake_up_.base());
}

void Posts::add(Function<void()> callback) {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(callback));
    if (!any_.exchange(true, std::memory_order_release)) uv_async_send(wake_up_.get());
}

}  // namespace vigil
