#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>
#include <vigil/core/function.hpp>

namespace vigil {

/// The one gate through which user code is called. It keeps exceptions out of C frames: after the first one no user
/// code runs until the turn is over, and the exception waits for whoever runs the loop.
class Callbacks {
   public:
    /// Calls `callback` unless this turn has failed already. Callers look at allowed() first where being skipped
    /// would lose something.
    template <class Callback>
    void call(Callback&& callback) noexcept {
        if (failed_) return;
        inside_ = true;
        ++count_;
        try {
            callback();
        } catch (...) {
            fail(std::current_exception());
        }
        while (!doomed_.empty()) {
            const auto coroutine = doomed_.back();
            doomed_.pop_back();
            coroutine.destroy();
        }
        inside_ = false;
    }

    /// Destroys a coroutine, which may be the one that is running, as soon as that is safe.
    void destroy(std::coroutine_handle<> coroutine) {
        if (inside_) {
            doomed_.push_back(coroutine);
        } else {
            coroutine.destroy();
        }
    }

    [[nodiscard]] bool allowed() const noexcept { return !failed_; }
    [[nodiscard]] bool inside() const noexcept { return inside_; }
    /// How many were called so far.
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }

    void fail(std::exception_ptr error) noexcept {
        failed_ = true;
        if (kept_for_runner_) {
            error_ = std::move(error);
        } else if (on_error_) {
            const auto handler = on_error_;
            (*handler)(std::move(error));
        } else {
            std::rethrow_exception(std::move(error));  // out of a noexcept function: std::terminate, with the message
        }
    }

    /// While our own run() and its kin run the loop they take the exception; else it goes to on_error.
    void keep_for_runner(bool keep) noexcept { kept_for_runner_ = keep; }
    void on_error(Function<void(std::exception_ptr)> handler) {
        on_error_ = handler ? std::make_shared<Handler>(std::move(handler)) : nullptr;
    }

    /// The turn is over.
    void end_turn() noexcept {
        if (!error_) failed_ = false;
    }
    void rethrow() {
        if (!error_) return;
        failed_ = false;
        std::rethrow_exception(std::exchange(error_, nullptr));
    }

   private:
    using Handler = Function<void(std::exception_ptr)>;

    std::shared_ptr<Handler> on_error_;  // owned here, and by the call in progress, which may replace it
    std::exception_ptr error_;
    std::vector<std::coroutine_handle<>> doomed_;
    std::uint64_t count_ = 0;
    bool kept_for_runner_ = false;
    bool failed_ = false;
    bool inside_ = false;
};

}  // namespace vigil
