#pragma once

#include <cassert>
#include <coroutine>
#include <exception>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>
#include <vigil/core/time.hpp>
#include <vigil/loop/loop.hpp>

namespace vigil {

/// Thrown out of a co_await whose stop token was triggered.
class Cancelled : public std::exception {
   public:
    [[nodiscard]] const char* what() const noexcept override { return "cancelled"; }
};

/// A coroutine that gives a T. Lazy: it starts when it is awaited, or by Loop::spawn(). The Async owns the coroutine:
/// destroying it, at any point where the coroutine waits, destroys the coroutine, its locals and what it awaits.
///
///     vigil::Async<int> answer(vigil::Loop& loop) {
///         co_await loop.sleep(1s);
///         co_return 42;
///     }
///
/// Exceptions travel through co_await. A coroutine's reference parameters must outlive it.
template <class T = void>
class [[nodiscard]] Async {
   public:
    class promise_type;

    Async(Async&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
    Async& operator=(Async&& other) noexcept {
        std::swap(coroutine_, other.coroutine_);
        return *this;
    }
    ~Async() {
        if (coroutine_) coroutine_.destroy();
    }

    /// Awaits the result; once.
    auto operator co_await() && noexcept {
        struct Awaiter {
            std::coroutine_handle<promise_type> coroutine;

            bool await_ready() const noexcept { return false; }
            // One that ends at once returns here, so that a loop over such coroutines needs no stack. (Symmetric
            // transfer would do the same, but g++ guarantees that only with optimisation.)
            bool await_suspend(std::coroutine_handle<> waiting) const {
                auto& promise = coroutine.promise();
                promise.waiting_ = waiting;
                promise.starting_ = true;
                coroutine.resume();
                promise.starting_ = false;
                return !coroutine.done();
            }
            T await_resume() const { return coroutine.promise().result(); }
        };
        assert(coroutine_ && !coroutine_.done() && "an Async is awaited once");
        return Awaiter{coroutine_};
    }

   private:
    explicit Async(std::coroutine_handle<promise_type> coroutine) noexcept : coroutine_(coroutine) {}

    std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
class AsyncResult {
   public:
    template <class Value = T>
    void return_value(Value&& value) {
        outcome_.template emplace<1>(std::forward<Value>(value));
    }
    void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }
    T result() {
        if (outcome_.index() == 2) std::rethrow_exception(std::get<2>(outcome_));
        return std::move(std::get<1>(outcome_));
    }

   private:
    std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <>
class AsyncResult<void> {
   public:
    void return_void() const noexcept {}
    void unhandled_exception() noexcept { error_ = std::current_exception(); }
    void result() const {
        if (error_) std::rethrow_exception(error_);
    }

   private:
    std::exception_ptr error_;
};

}  // namespace detail

template <class T>
class Async<T>::promise_type : public detail::AsyncResult<T> {
   public:
    Async get_return_object() noexcept { return Async(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    auto final_suspend() const noexcept {
        struct ResumeWaiting {
            bool await_ready() const noexcept { return false; }
            std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                if (ended.promise().starting_) return std::noop_coroutine();
                return ended.promise().waiting_;
            }
            void await_resume() const noexcept {}
        };
        return ResumeWaiting{};
    }

   private:
    friend class Async;
    std::coroutine_handle<> waiting_;
    bool starting_ = false;
};

/// What Loop::sleep() returns, to be awaited at once. The timer belongs to the loop; a coroutine that is destroyed
/// while it sleeps takes the timer along.
class [[nodiscard]] Sleep {
   public:
    Sleep(Loop& loop, Delay delay, std::stop_token stop);
    Sleep(const Sleep&) = delete;
    Sleep& operator=(const Sleep&) = delete;
    ~Sleep();

    [[nodiscard]] bool await_ready() const noexcept { return stop_.stop_requested(); }
    void await_suspend(std::coroutine_handle<> waiting);
    void await_resume() const;

   private:
    struct WakeUp {
        Sleep* sleep;
        void operator()() const;
    };

    Loop& loop_;
    Delay delay_;
    std::stop_token stop_;
    TimerId timer_{};
    std::coroutine_handle<> waiting_;
    std::optional<std::stop_callback<WakeUp>> on_stop_;
};

}  // namespace vigil
