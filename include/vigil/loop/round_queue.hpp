#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/loop/bound.hpp>
#include <vigil/queue/round_queue.hpp>

namespace vigil::loop {

/// What a loop drives of a RoundQueue: not the taking, only the cleaning.
template <class T>
class CleanedRoundQueue : public vigil::RoundQueue<T> {
   public:
    using vigil::RoundQueue<T>::RoundQueue;

    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept { return this->next_expiry(); }
    template <class Sink>
    Evicted evict_due(TimePoint now, std::size_t limit, Sink&&) noexcept {
        const std::size_t cleaned = this->clean(now, limit);
        return {.items = cleaned, .refused = false, .more = cleaned == limit};
    }
};

/// A RoundQueue on a loop, which removes by itself what is older than the ttl.
template <class T>
class RoundQueue : public Bound<CleanedRoundQueue<T>> {
    using Base = Bound<CleanedRoundQueue<T>>;

   public:
    explicit RoundQueue(Loop& loop, const RoundQueueOptions& options = {})
        : Base(loop, CleanedRoundQueue<T>(options), [](int) {}) {}

    /// See vigil::RoundQueue.
    bool put(std::string_view id, T value) {
        Base::prepare();
        const bool added = Base::queue_.put(Base::now(), id, std::move(value));
        Base::changed();
        return added;
    }
    [[nodiscard]] std::optional<RoundView<T>> take() { return Base::queue_.take(Base::now()); }
    std::optional<T> remove(std::string_view id) {
        auto value = Base::queue_.remove(id);
        if (Base::empty()) Base::changed();
        return value;
    }
    [[nodiscard]] std::optional<RoundView<T>> find(std::string_view id) const noexcept { return Base::queue_.find(id); }
    [[nodiscard]] std::optional<TimePoint> next_available() const noexcept { return Base::queue_.next_available(); }
};

}  // namespace vigil::loop
