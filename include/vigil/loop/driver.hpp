#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include <vigil/core/time.hpp>
#include <vigil/loop/loop.hpp>
#include <vigil/queue/timed_queue.hpp>

namespace vigil {

enum class DriveId : std::uint64_t {};  ///< never given out twice; DriveId{} is none

/// What a driver does in one turn before the loop looks after others.
struct DriverBudget {
    std::size_t items = 4096;                      ///< handed over, or only put in order; at least 1
    Duration time = std::chrono::milliseconds{1};  ///< by the clock, so without effect on virtual time
};

/// Hands what is due in TimedQueues to their sinks, at the right time, on a loop. It waits for the earliest due of all
/// its queues with one timer, works within a budget for all of them together, queue by queue in turns, and goes on in
/// the next turn of the loop.
///
/// A sink may do anything but destroy its queue or the driver: change queues, add and remove some, stop the loop. A
/// sink that refuses is left alone until resume(); what is due in its queue waits, in order. If it throws, its item
/// stays, the exception is that of a callback of the loop, and the next turn tries again.
///
/// Whoever changes a queue calls changed() afterwards. The queues of namespace vigil::loop do that by themselves, with
/// the driver of their loop.
class Driver {
   public:
    explicit Driver(Loop& loop, DriverBudget budget = {}) noexcept;
    ~Driver();
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;

    void set_budget(DriverBudget budget) noexcept;

    /// The queue must outlive this, or be removed before.
    template <TimedQueue Queue, class Sink>
    DriveId add(Queue& queue, Sink sink) {
        return add(std::make_unique<DrivenBy<Queue, Sink>>(queue, std::move(sink)));
    }
    /// Has no effect if it is removed already.
    void remove(DriveId id) noexcept;

    /// The queue may have become due earlier, or empty. Cheap.
    void changed(DriveId id);
    /// Makes sure of the memory that the next changed() needs, so that it can follow a change that must not fail.
    void prepare() { loop_.reserve_timers(1); }
    /// The sink that refused may be asked again; also from within the sink.
    void resume(DriveId id);

   private:
    struct Driven {
        virtual ~Driven() = default;
        [[nodiscard]] virtual std::optional<TimePoint> next_due() const = 0;
        virtual Evicted evict_due(TimePoint now, std::size_t limit) = 0;

        DriveId id{};
        bool refused = false;
        bool resumed = false;  // while the sink was at work
        bool removed = false;
    };
    template <class Queue, class Sink>
    struct DrivenBy final : Driven {
        DrivenBy(Queue& driven, Sink&& its_sink) : queue(driven), sink(std::move(its_sink)) {}
        [[nodiscard]] std::optional<TimePoint> next_due() const override { return queue.next_due(); }
        Evicted evict_due(TimePoint now, std::size_t limit) override { return queue.evict_due(now, limit, sink); }

        Queue& queue;
        Sink sink;
    };

    DriveId add(std::unique_ptr<Driven> driven);
    [[nodiscard]] Driven* find(DriveId id) const noexcept;
    [[nodiscard]] std::optional<TimePoint> earliest() const;
    void work();
    void work_within_budget();
    void finish_work();
    void arm();
    void disarm() noexcept;

    Loop& loop_;
    DriverBudget budget_;
    std::vector<std::unique_ptr<Driven>> driven_;
    std::size_t turn_of_ = 0;  // which queue comes first
    std::uint64_t last_id_ = 0;
    TimerId timer_{};
    TimePoint armed_for_ = TimePoint::max();  // of the timer, if there is one
    bool working_ = false;
};

}  // namespace vigil
