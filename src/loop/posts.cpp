#include "loop/posts.hpp"

#include <utility>
#include <vigil/loop/loop.hpp>

namespace vigil {

Posts::Posts(uv_loop_t* loop, Function<void()> arrived)
    : arrived_(std::move(arrived)), wake_up_(loop, this, "uv_async_init", uv_async_init, [](uv_async_t* handle) {
          static_cast<Posts*>(handle->data)->arrived_();
      }) {
    uv_unref(wake_up_.base());
}

bool Posts::add(Function<void()>&& callback) {
    const std::lock_guard lock(mutex_);
    if (!wake_up_) return false;
    posted_.push_back(std::move(callback));
    if (!any_.exchange(true, std::memory_order_release)) uv_async_send(wake_up_.get());
    return true;
}

void Posts::close() noexcept {
    std::vector<Function<void()>> dropped;  // outside of the lock: what they hold may post
    const std::lock_guard lock(mutex_);
    wake_up_ = {};
    dropped.swap(posted_);
}

Poster::Poster(std::shared_ptr<Posts> posts) noexcept : posts_(std::move(posts)) {}

bool Poster::post(Function<void()> callback) const { return posts_->add(std::move(callback)); }

}  // namespace vigil
