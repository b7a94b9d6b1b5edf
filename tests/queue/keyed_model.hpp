#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vigil/core/time.hpp>
#include <vigil/queue/keyed_item.hpp>

#include "queue/keyed_copy.hpp"

namespace vigil::testing {

/// What a PriorityHashQueue promises, done naively: the items in order of (due, sequence), and those that are not
/// sealed by key.
class KeyedModel {
   public:
    using Rank = std::pair<TimePoint, std::uint64_t>;
    using Items = std::map<Rank, ItemCopy>;

    struct Pushed {
        bool inserted;
        bool sealed;
    };

    [[nodiscard]] const Items& items() const { return items_; }
    [[nodiscard]] bool empty() const { return items_.empty(); }
    [[nodiscard]] const ItemCopy& first() const { return items_.begin()->second; }
    [[nodiscard]] bool has_due(TimePoint now) const { return !empty() && first().due <= now; }
    [[nodiscard]] const ItemCopy* find(std::string_view key) const {
        const auto found = open_.find(key);
        return found == open_.end() ? nullptr : &items_.at(found->second);
    }

    void set_defaults(const PushOptions& options) { defaults_[std::string(options.type)] = options; }

    Pushed push(TimePoint now, const Push& message) {
        const Rules rules = rules_for(message.options);
        const bool sealed = make_way(now, message, rules);
        const bool inserted = open_.count(message.key) == 0;
        if (inserted) {
            open(now, message, rules);
        } else {
            update(message, rules);
        }
        const ItemCopy& item = items_.at(open_.find(message.key)->second);
        if (item.pushes < rules.max_count && bytes_of(item) < rules.max_bytes) return {inserted, sealed};
        seal(now, message.key);
        return {inserted, true};
    }

    bool cancel(std::string_view key) {
        const auto found = open_.find(key);
        if (found == open_.end()) return false;
        items_.erase(found->second);
        open_.erase(found);
        return true;
    }

    bool reschedule(std::string_view key, TimePoint due) {
        const auto found = open_.find(key);
        if (found == open_.end()) return false;
        found->second = move(found->second, due);
        return true;
    }

    bool restore(ItemCopy item) {
        if (!item.sealed && open_.count(item.key) > 0) return false;
        const Rank rank{item.due, next_sequence_++};
        if (!item.sealed) open_.emplace(item.key, rank);
        items_.emplace(rank, std::move(item));
        return true;
    }

    void take_first() {
        offer_first();
        take_offered();
    }

    /// The first item goes to a sink: it cannot be found meanwhile, and a push of its key opens a new item.
    void offer_first() {
        offered_ = items_.begin()->first;
        if (!first().sealed) open_.erase(first().key);
    }
    [[nodiscard]] const ItemCopy& offered() const { return items_.at(*offered_); }
    /// The sink takes it.
    void take_offered() {
        items_.erase(*offered_);
        offered_.reset();
    }
    /// The sink refuses it.
    void keep_offered() {
        if (!offered().sealed) open_.emplace(offered().key, *offered_);
        offered_.reset();
    }

   private:
    struct Rules {
        DataMode mode;
        Expiry expiry;
        Duration max_wait;
        std::uint32_t max_count;
        std::size_t max_bytes;
    };

    [[nodiscard]] Rules rules_for(const PushOptions& options) const {
        const auto of_type = defaults_.find(std::string(options.type));
        const auto of_queue = defaults_.find(std::string());
        const auto first_said = [&](auto option, auto otherwise) {
            if (options.*option) return *(options.*option);
            if (of_type != defaults_.end() && of_type->second.*option) return *(of_type->second.*option);
            if (of_queue != defaults_.end() && of_queue->second.*option) return *(of_queue->second.*option);
            return otherwise;
        };
        return {first_said(&PushOptions::mode, DataMode::replace), first_said(&PushOptions::expiry, Expiry::restart),
                std::max(Duration{0}, first_said(&PushOptions::max_wait, Duration::max())),
                first_said(&PushOptions::max_count, std::numeric_limits<std::uint32_t>::max()),
                first_said(&PushOptions::max_bytes, std::numeric_limits<std::size_t>::max())};
    }

    static std::size_t bytes_of(const ItemCopy& item) {
        std::size_t bytes = 0;
        for (const std::string_view fragment : Fragments(item.raw)) bytes += fragment.size();
        return bytes;
    }

    /// Seals the item of the key if the message must not go into it.
    bool make_way(TimePoint now, const Push& message, const Rules& rules) {
        if (offered_ && offered().key == message.key && !offered().sealed) {
            items_.at(*offered_).sealed = true;
            return true;
        }
        const ItemCopy* item = find(message.key);
        if (item == nullptr) return false;
        const auto end = end_of_wait(*item, rules);
        const bool too_late = end && now >= *end;
        const bool too_long = rules.mode == DataMode::append && !message.data.empty() &&
                              rules.max_bytes < bytes_of(*item) + message.data.size();
        if (too_late || too_long) seal(now, message.key);
        return too_late || too_long;
    }

    void open(TimePoint now, const Push& message, const Rules& rules) {
        ItemCopy item{
            std::string(message.key), std::string(message.options.type), {}, {}, now, next_sequence_, 1, false};
        append_fragment(item.raw, message.data);
        item.due = std::min(message.due, end_of_wait(item, rules).value_or(message.due));
        const Rank rank{item.due, next_sequence_++};
        open_.emplace(message.key, rank);
        items_.emplace(rank, std::move(item));
    }

    void update(const Push& message, const Rules& rules) {
        Rank& rank = open_.find(message.key)->second;
        ItemCopy& item = items_.at(rank);
        ++item.pushes;
        if (rules.mode == DataMode::replace) item.raw.clear();
        if (rules.mode != DataMode::keep_first) {
            append_fragment(item.raw, message.data);
            item.type = message.options.type;
        }
        TimePoint due = rules.expiry == Expiry::restart ? message.due : item.due;
        if (rules.expiry == Expiry::earliest) due = std::min(due, message.due);
        due = std::min(due, end_of_wait(item, rules).value_or(due));
        if (rules.expiry == Expiry::restart || due != item.due) rank = move(rank, due);
    }

    static std::optional<TimePoint> end_of_wait(const ItemCopy& item, const Rules& rules) {
        if (rules.max_wait == Duration::max()) return std::nullopt;
        return saturating_add(item.first_push, rules.max_wait);
    }

    Rank move(Rank rank, TimePoint due) {
        auto node = items_.extract(rank);
        node.key() = {due, next_sequence_++};
        node.mapped().due = due;
        return items_.insert(std::move(node)).position->first;
    }

    void seal(TimePoint now, std::string_view key) {
        const auto found = open_.find(key);
        const bool is_due = found->second.first <= now;
        const Rank rank = is_due ? found->second : move(found->second, now);
        items_.at(rank).sealed = true;
        open_.erase(found);
    }

    Items items_;
    std::map<std::string, Rank, std::less<>> open_;
    std::map<std::string, PushOptions> defaults_;
    std::optional<Rank> offered_;
    std::uint64_t next_sequence_ = 0;
};

}  // namespace vigil::testing
