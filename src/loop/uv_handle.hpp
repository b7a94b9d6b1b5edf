#pragma once

#include <uv.h>

#include <memory>
#include <system_error>
#include <utility>

namespace vigil {

/// Throws what libuv reports as an error; `what` says what was being done.
inline void throw_if_failed(int status, const char* what) {
    if (status < 0) throw std::system_error(-status, std::system_category(), what);
}

/// A boxed libuv handle: closed by its owner's destructor, freed by libuv's close callback, which may come later.
template <class Handle>
class UvHandle {
   public:
    UvHandle() noexcept = default;

    /// Takes a handle that is already initialised.
    UvHandle(std::unique_ptr<Handle> initialised, void* owner) noexcept : handle_(initialised.release()) {
        handle_->data = owner;
    }
    /// Calls `init(loop, handle, args...)`; a handle whose init fails is freed, not closed.
    template <class Init, class... Args>
    UvHandle(uv_loop_t* loop, void* owner, const char* what, Init init, Args... args) {
        auto box = std::make_unique<Handle>();
        throw_if_failed(init(loop, box.get(), args...), what);
        handle_ = box.release();
        handle_->data = owner;
    }

    UvHandle(UvHandle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    UvHandle& operator=(UvHandle&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~UvHandle() {
        if (handle_ == nullptr) return;
        uv_close(base(), [](uv_handle_t* closed) { delete reinterpret_cast<Handle*>(closed); });
    }

    [[nodiscard]] Handle* get() const noexcept { return handle_; }
    [[nodiscard]] uv_handle_t* base() const noexcept { return reinterpret_cast<uv_handle_t*>(handle_); }
    [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

   private:
    Handle* handle_ = nullptr;
};

/// The libuv loop itself, owned or borrowed. Declared before the handles that live on it.
class UvLoop {
   public:
    /// Null: a loop of its own.
    explicit UvLoop(uv_loop_t* borrowed) : loop_(borrowed) {
        if (borrowed != nullptr) return;
        owned_ = std::make_unique<uv_loop_t>();
        loop_ = owned_.get();
        throw_if_failed(uv_loop_init(loop_), "uv_loop_init");
    }
    UvLoop(const UvLoop&) = delete;
    UvLoop& operator=(const UvLoop&) = delete;
    ~UvLoop() {
        if (!owned_) return;
        uv_run(loop_, UV_RUN_DEFAULT);  // lets the closed handles be freed
        uv_loop_close(loop_);
    }

    [[nodiscard]] uv_loop_t* get() const noexcept { return loop_; }

   private:
    std::unique_ptr<uv_loop_t> owned_;
    uv_loop_t* loop_;
};

}  // namespace vigil
