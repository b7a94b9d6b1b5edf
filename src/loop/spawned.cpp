#include "loop/spawned.hpp"

#include <exception>
#include <utility>

namespace vigil {

/// The coroutine at the bottom of a spawned chain: nobody awaits it, so it hands its exception to the loop and removes
/// itself at its end.
struct Spawned::Root {
    struct promise_type {
        Root get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        auto final_suspend() const noexcept {
            struct Remove {
                bool await_ready() const noexcept { return false; }
                void await_suspend(std::coroutine_handle<promise_type> ended) const noexcept {
                    auto& [owner, id] = ended.promise();
                    if (owner->roots_.erase(id) > 0) ended.destroy();
                }
                void await_resume() const noexcept {}
            };
            return Remove{};
        }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept {
            try {
                throw;
            } catch (const Cancelled&) {
            } catch (...) {
                owner->callbacks_.fail(std::current_exception());
            }
        }

        Spawned* owner = nullptr;
        SpawnId id{};
    };

    std::coroutine_handle<promise_type> handle;
};

Spawned::Root Spawned::own(Async<void> coroutine) { co_await std::move(coroutine); }

SpawnId Spawned::add(Async<void> coroutine) {
    const SpawnId id{++last_id_};
    const auto root = own(std::move(coroutine)).handle;
    root.promise().owner = this;
    root.promise().id = id;
    roots_.emplace(id, root);
    return id;
}

void Spawned::start(SpawnId id) {
    const auto found = roots_.find(id);
    if (found != roots_.end()) found->second.resume();
}

bool Spawned::cancel(SpawnId id) {
    const auto found = roots_.find(id);
    if (found == roots_.end()) return false;
    const auto root = found->second;
    roots_.erase(found);
    callbacks_.destroy(root);
    return true;
}

void Spawned::clear() noexcept {
    while (!roots_.empty()) {  // what is destroyed may spawn others
        for (const auto& [id, root] : std::exchange(roots_, {})) root.destroy();
    }
}

}  // namespace vigil
