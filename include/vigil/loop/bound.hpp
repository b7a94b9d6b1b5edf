#pragma once

#include <cstddef>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/driver.hpp>
#include <vigil/loop/loop.hpp>

namespace vigil::loop {

/// What the queues of this namespace have in common: a queue that lives on a loop, which supplies the time and hands
/// what is due to the sink. The loop must outlive it; it must not be destroyed by its own sink.
template <TimedQueue Queue>
class Bound {
   public:
    Bound(const Bound&) = delete;
    Bound& operator=(const Bound&) = delete;

    [[nodiscard]] std::size_t size() const noexcept { return queue_.size(); }
    [[nodiscard]] bool empty() const noexcept { return queue_.empty(); }
    /// The queue itself, to look at.
    [[nodiscard]] const Queue& queue() const noexcept { return queue_; }

    /// A sink that has refused can take items again.
    void resume() { loop_.driver().resume(id_); }

   protected:
    template <class Sink>
    Bound(Loop& loop, Queue queue, Sink sink)
        : loop_(loop), queue_(std::move(queue)), id_(loop.driver().add(queue_, std::move(sink))) {}
    ~Bound() { loop_.driver().remove(id_); }

    [[nodiscard]] TimePoint now() const { return loop_.now(); }
    /// Before a change that must not fail after it is made.
    void prepare() { loop_.driver().prepare(); }
    /// The same; and from when delays count, so that nothing is early.
    [[nodiscard]] TimePoint start() {
        prepare();
        return loop_.due_after(Duration::zero());
    }
    void changed() { loop_.driver().changed(id_); }

    Loop& loop_;
    Queue queue_;

   private:
    DriveId id_;
};

}  // namespace vigil::loop
