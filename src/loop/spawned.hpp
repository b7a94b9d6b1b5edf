#pragma once

#include <coroutine>
#include <cstdint>
#include <unordered_map>
#include <vigil/loop/async.hpp>

#include "loop/callbacks.hpp"

namespace vigil {

/// The coroutines that the loop owns. One that is cancelled is destroyed when the callback that did it has returned, so
/// a coroutine may even cancel itself.
class Spawned {
   public:
    explicit Spawned(Callbacks& callbacks) : callbacks_(callbacks) {}

    SpawnId add(Async<void> coroutine);
    void start(SpawnId id);
    bool cancel(SpawnId id);
    void clear() noexcept;

   private:
    struct Root;

    static Root own(Async<void> coroutine);

    Callbacks& callbacks_;
    std::unordered_map<SpawnId, std::coroutine_handle<>> roots_;
    std::uint64_t last_id_ = 0;
};

}  // namespace vigil
