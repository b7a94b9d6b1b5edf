#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/round_queue.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

/// A naive model of RoundQueue, and random steps for both.
namespace vigil::testing::round {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

inline void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

using Value = std::unique_ptr<std::uint64_t>;

/// A value without the box, as a journal would hold it.
struct Noted {
    std::string id;
    std::uint64_t value;
    TimePoint created;
    std::optional<TimePoint> last_taken;
    std::uint64_t times_taken;
    std::uint64_t sequence;

    bool operator==(const Noted&) const = default;
};
inline Noted note(const RoundView<Value>& view) {
    return {std::string(view.id), *view.value, view.created, view.last_taken, view.times_taken, view.sequence};
}

/// An observer that knows no more than it is told, and notes no more than it must.
class Mirror {
   public:
    using Slot = std::uint32_t;
    using Items = std::map<Slot, Noted>;

    /// Without items it notes nothing, and needs no memory for that.
    explicit Mirror(Items* items) : items_(items) {}

    void changed(Slot slot, const RoundView<Value>& view, Change change) const noexcept {
        if (items_ == nullptr) return;
        const auto known = items_->find(slot);
        expect((known == items_->end()) == (change == Change::added), "only what is new is added");
        switch (change) {
            case Change::added:
                items_->emplace(slot, note(view));
                break;
            case Change::replaced:
                known->second.value = *view.value;
                known->second.created = view.created;
                [[fallthrough]];
            case Change::moved:
                known->second.last_taken = view.last_taken;
                known->second.times_taken = view.times_taken;
                known->second.sequence = view.sequence;
                break;
            default:
                expect(false, "a round queue knows no other changes");
        }
    }
    void removed(Slot slot) const noexcept {
        if (items_ != nullptr) expect(items_->erase(slot) == 1, "what is removed was there");
    }

   private:
    Items* items_;
};

using Queue = RoundQueue<Value, Mirror>;

/// A queue and its observer beside sorted sets that hold the same.
class CheckedQueue {
   public:
    enum class Observed { yes, no };

    CheckedQueue(const RoundQueueOptions& options, TimePoint start, Observed observed = Observed::yes)
        : queue(options, Mirror(observed == Observed::yes ? &mirror : nullptr)),
          now(start),
          options_(options),
          observed_(observed == Observed::yes),
          latest_(start) {
        (void)queue.take(start);
    }

    [[nodiscard]] std::size_t size() const { return items_.size(); }
    [[nodiscard]] TimePoint latest() const { return latest_; }

    /// False if memory ran out.
    bool put(const std::string& id, std::size_t allowed_allocations = unlimited) {
        auto value = std::make_unique<std::uint64_t>(next_value_);
        const auto old = items_.find(id);
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            expect(queue.put(now, id, std::move(value)) == (old == items_.end()), "put tells whether the id is new");
        } catch (const std::bad_alloc&) {
            expect(value != nullptr && *value == next_value_, "a value that is not put is not taken");
            return false;
        }
        see();
        if (old != items_.end()) forget(old);
        remember({id, next_value_++, latest_, std::nullopt, 0, next_sequence_++});
        return true;
    }

    /// False if nothing was available.
    bool take() {
        see();
        in_order_ = true;
        const auto view = queue.take(now);
        while (!order_.empty() && is_expired(first())) forget(items_.find(first().id));
        const bool none = order_.empty() || available(first()) > latest_;
        expect(view.has_value() != none, "something is handed out exactly if it is available");
        if (none) return false;
        Noted& item = items_.at(std::get<std::string>(*order_.begin())).noted;
        order_.erase(order_.begin());
        item.last_taken = latest_;
        item.sequence = next_sequence_++;
        ++item.times_taken;
        order_.insert(place_of(item));
        expect(view->id == item.id, "the one that has waited longest is handed out");
        expect(note(*view) == item, "as it is then");
        return true;
    }

    void clean(std::size_t limit) {
        see();
        in_order_ = true;
        const std::size_t cleaned = queue.clean(now, limit);
        std::size_t expected = 0;
        for (; expected < limit && !ages_.empty(); ++expected) {
            const auto oldest = items_.find(std::get<std::string>(*ages_.begin()));
            if (!is_expired(oldest->second.noted)) break;
            forget(oldest);
        }
        expect(cleaned == expected, "what has expired is removed, as much as was asked for");
    }

    void remove(const std::string& id) {
        const auto value = queue.remove(id);
        const auto known = items_.find(id);
        expect(value.has_value() == (known != items_.end()), "what is there, and only that, can be removed");
        if (!value) return;
        expect(**value == known->second.noted.value, "the value comes back");
        forget(known);
    }

    void find(const std::string& id) const {
        const auto view = queue.find(id);
        const auto known = items_.find(id);
        expect(view.has_value() == (known != items_.end()), "what is there, and only that, is found");
        expect(!view || note(*view) == known->second.noted, "as it is");
    }

    /// Restores an item of any age. False if memory ran out.
    bool restore(const std::string& id, TimePoint created, std::optional<TimePoint> last_taken,
                 std::size_t allowed_allocations = unlimited) {
        Noted item{id, next_value_, created, last_taken, last_taken ? 3U : 0U, next_sequence_ + 2};
        RoundItem<Value> given{
            id, std::make_unique<std::uint64_t>(item.value), created, last_taken, item.times_taken, item.sequence};
        std::optional<std::uint32_t> slot;
        try {
            const AllocationsFailAfter limited{allowed_allocations};
            slot = queue.restore(now, std::move(given));
        } catch (const std::bad_alloc&) {
            expect(given.id == id && *given.value == item.value, "an item that is not restored is not taken");
            return false;
        }
        expect(slot.has_value() == !items_.contains(id), "only an id that is not there is restored");
        if (!slot) return true;
        see();
        item.created = std::min(created, latest_);
        if (last_taken) item.last_taken = std::min(*last_taken, latest_);
        expect(!observed_ || mirror.emplace(*slot, item).second, "the observer was not told, and the slot was free");
        ++next_value_;
        next_sequence_ = item.sequence + 1;
        in_order_ = false;
        remember(std::move(item));
        return true;
    }

    void compare() const {
        expect(queue.size() == size() && queue.empty() == items_.empty(), "the size");
        const auto next_available = queue.next_available();
        const auto next_expiry = queue.next_expiry();
        expect(next_available.has_value() == !items_.empty(), "something will be available if there is anything");
        expect(next_expiry.has_value() == (!items_.empty() && expires()), "something will expire if anything does");
        if (next_available && in_order_) expect(*next_available == available(first()), "when the first one is");
        if (next_available && !in_order_) expect(*next_available <= std::max(available(first()), latest_), "not late");
        if (!next_expiry) return;
        const TimePoint expiry = saturating_add(std::get<0>(*ages_.begin()), options_.ttl.value());
        expect(in_order_ ? *next_expiry == expiry : *next_expiry <= expiry, "when the oldest one does");
    }
    void check() const {
        expect(queue.check(), "check()");
        for (const auto& [id, known] : items_) find(id);
        if (!observed_) return;
        expect(mirror.size() == size(), "the observer has seen all of it");
        for (const auto& [slot, item] : mirror) {
            const auto known = items_.find(item.id);
            expect(known != items_.end() && known->second.noted == item, "and as it is");
        }
    }

    Mirror::Items mirror;
    Queue queue;
    TimePoint now;

   private:
    struct Known {
        Noted noted;
        std::uint64_t arrival;
    };
    using Items = std::map<std::string, Known>;
    using Place = std::tuple<bool, TimePoint, std::uint64_t, std::string>;  // in the order of handing out

    void see() { latest_ = std::max(latest_, now); }
    [[nodiscard]] const Noted& first() const { return items_.at(std::get<std::string>(*order_.begin())).noted; }
    [[nodiscard]] bool expires() const { return options_.ttl.value() != Delay::longest; }
    [[nodiscard]] bool is_expired(const Noted& item) const {
        return expires() && saturating_add(item.created, options_.ttl.value()) <= latest_;
    }
    [[nodiscard]] TimePoint available(const Noted& item) const {
        return item.last_taken ? saturating_add(*item.last_taken, options_.dequeue_period.value()) : item.created;
    }

    static Place place_of(const Noted& item) {
        return Place(item.last_taken.has_value(), item.last_taken.value_or(item.created), item.sequence, item.id);
    }
    void remember(Noted item) {
        order_.insert(place_of(item));
        ages_.emplace(item.created, next_arrival_, item.id);
        std::string id = item.id;
        items_.emplace(std::move(id), Known{std::move(item), next_arrival_++});
    }
    void forget(Items::iterator known) {
        const auto& [noted, arrival] = known->second;
        order_.erase(place_of(noted));
        ages_.erase({noted.created, arrival, noted.id});
        items_.erase(known);
    }

    RoundQueueOptions options_;
    bool observed_;
    TimePoint latest_;
    Items items_;
    std::set<Place> order_;
    std::set<std::tuple<TimePoint, std::uint64_t, std::string>> ages_;
    std::uint64_t next_arrival_ = 0;
    std::uint64_t next_value_ = 0;
    std::uint64_t next_sequence_ = 0;
    bool in_order_ = true;
};

/// Short and long ones, with bytes of any kind.
inline std::string id_of(std::uint64_t number) {
    if (number == 0) return "";
    std::string id = std::to_string(number);
    if (number % 3 == 0) id.append(number % 50, '\0');
    return id;
}

inline Duration up_to(Random& random, Duration most) { return Duration{random.below(most.count() + 1)}; }
/// Not before the beginning of time.
inline TimePoint before(TimePoint time, Duration by) {
    return time < TimePoint::min() + by ? TimePoint::min() : time - by;
}

/// On a little, rarely far; to what comes next, or just before it; and sometimes back.
inline TimePoint random_now(Random& random, const CheckedQueue& checked) {
    using namespace std::chrono_literals;
    const TimePoint latest = checked.latest();
    const auto next = random.one_in(8) ? checked.queue.next_expiry() : checked.queue.next_available();
    const TimePoint soon = next && *next < saturating_add(latest, 1h) ? std::max(latest, *next) : latest;
    const Duration most = random.one_in(500) ? 20s : 20us;
    const TimePoint times[] = {
        soon,
        std::max(latest, before(soon, 1us)),
        saturating_add(latest, up_to(random, most)),
        saturating_add(latest, up_to(random, 2us)),
        before(latest, up_to(random, 1min)),
        latest,
    };
    return times[random.below(std::size(times))];
}

inline void random_step(CheckedQueue& checked, Random& random, std::size_t around) {
    using namespace std::chrono_literals;
    if (random.one_in(4)) checked.now = random_now(random, checked);
    const std::string id = id_of(random.below(2 * around));
    const auto choice = random.below(1000);
    if (choice < 300) {
        checked.put(id);
    } else if (choice < 600) {
        checked.take();
    } else if (choice < 850) {
        checked.remove(id);
    } else if (choice < 940) {
        checked.find(id);
    } else if (choice < 990) {
        const std::size_t limits[] = {0, 1, 2, 10, unlimited};
        checked.clean(limits[random.below(std::size(limits))]);
    } else {
        const TimePoint created = before(saturating_add(checked.now, 1ms), up_to(random, 3ms));
        const TimePoint last_taken = saturating_add(created, up_to(random, 1ms));
        checked.restore(id, created, random.one_in(3) ? std::nullopt : std::optional(last_taken));
    }
}

}  // namespace vigil::testing::round
