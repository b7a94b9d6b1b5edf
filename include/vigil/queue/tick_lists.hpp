#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>
#include <vigil/queue/occupancy.hpp>
#include <vigil/queue/slot_lists.hpp>

namespace vigil {

/// Small numbers in lists by tick, for SlotRing: which come at which tick, from the current one on.
///
/// A ring of slots has one list for each tick of less than a turn ahead. Later ticks share lists, in groups of
/// neighbours, which cost nothing until their turn comes; then their owner takes the numbers of the first group out and
/// adds them again, to their slots. What has been added can only be taken in batches: a number that is not wanted any
/// more stays in its list until it is taken or filter_next() drops it.
///
/// Invariants: a slot is marked as occupied if its list is not empty; no group is empty; size() counts the numbers of
/// all lists. All calls O(1), but O(log n) in the number of groups for those. add() leaves the lists as they were if
/// memory runs out; only it and reserve_more() throw. Move-only.
class TickLists {
   public:
    using Tick = std::int64_t;
    using Number = SlotLists::Number;
    using Batch = SlotLists::Chunk;
    static constexpr Tick no_tick = std::numeric_limits<Tick>::max();

    struct Ticks {
        Tick first, last;
    };

    /// At least one slot. The current tick is 0.
    explicit TickLists(std::size_t slots)
        : slots_(static_cast<std::int64_t>(slots)), lists_of_slots_(slots), occupied_(slots) {
        assert(slots > 0);
    }

    [[nodiscard]] std::size_t slots() const noexcept { return lists_of_slots_.size(); }
    [[nodiscard]] std::size_t slot_of(Tick tick) const noexcept {
        return static_cast<std::size_t>(tick - floor_divide(tick, slots_) * slots_);
    }
    /// All numbers, those that are not wanted any more too.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t bytes() const noexcept {
        return lists_.bytes() + lists_of_slots_.capacity() * sizeof(List) +
               groups_.size() * (sizeof(Groups::value_type) + 4 * sizeof(void*));
    }

    [[nodiscard]] Tick current() const noexcept { return current_; }
    /// Does nothing if that tick is past; must not pass next_tick().
    void move_on_to(Tick tick) noexcept {
        if (tick <= current_) return;
        assert(tick <= next_tick());
        current_ = tick;
        current_index_ = tick % slots_;
    }
    /// The first tick, from the current one on, whose slot is occupied, or the first one of the first group if that is
    /// earlier; or no_tick.
    [[nodiscard]] Tick next_tick() const noexcept {
        return std::min(groups_.empty() ? no_tick : ticks_of_group().first, occupied_from(current_));
    }

    /// After this the next `count` calls of add() for a slot cannot fail.
    void reserve_more(std::size_t count) { lists_.reserve_more(count); }

    /// `tick` is after the current one.
    void add(Tick tick, Number number) {
        assert(tick > current_);
        if (tick - current_ < slots_) {
            const std::size_t index = index_of(tick);
            lists_.add(lists_of_slots_[index], number);
            occupied_.set(index);
        } else {
            lists_.reserve_more(1);
            lists_.add(groups_[group_of(tick)], number);
        }
        ++size_;
    }

    /// Whether the slot of the current tick is occupied.
    [[nodiscard]] bool at_slot() const noexcept { return !list_at(current_).empty(); }
    /// Some numbers of that slot; take_from_slot() takes just these out.
    [[nodiscard]] const Batch& batch_of_slot() const noexcept { return lists_.first_of(list_at(current_)); }
    void take_from_slot() noexcept {
        List& list = list_at(current_);
        take(list);
        if (list.empty()) occupied_.reset(index_of(current_));
    }

    /// Whether the current tick is one of the first group's, or after it.
    [[nodiscard]] bool at_group() const noexcept { return !groups_.empty() && ticks_of_group().first <= current_; }
    /// Whether all ticks of the first group have come to less than a turn ahead.
    [[nodiscard]] bool group_fits() const noexcept {
        return !groups_.empty() && ticks_of_group().last - current_ < slots_;
    }
    [[nodiscard]] Ticks ticks_of_group() const noexcept { return ticks_of(groups_.begin()->first); }
    /// Some numbers of the first group; take_from_group() takes just these out.
    [[nodiscard]] const Batch& batch_of_group() const noexcept { return lists_.first_of(groups_.begin()->second); }
    void take_from_group() noexcept {
        List& list = groups_.begin()->second;
        take(list);
        if (list.empty()) groups_.erase(groups_.begin());
    }

    /// Those of the same list that come after a batch; null if there are none.
    [[nodiscard]] const Batch* coming_after(const Batch& batch) const noexcept { return lists_.coming_after(batch); }

    /// Goes through the lists from call to call, a batch at a time, and drops the numbers of which `wanted(number)` is
    /// false: first those of the slots after the current one, then those of the groups. False after the last list; then
    /// the next call begins anew.
    template <class Wanted>
    bool filter_next(Wanted&& wanted) noexcept {
        if (!sweep_.walk && !sweep_next_list()) return false;
        std::size_t dropped = 0;
        const bool more = lists_.filter_next(*sweep_.walk, dropped, wanted);
        size_ -= dropped;
        if (!more || forget_swept_list_if_empty()) sweep_.walk.reset();
        return true;
    }

    /// Calls `visit(number, ticks of its list)` for all.
    template <class Visit>
    void each(Visit&& visit) const {
        const auto visit_list = [&](const List& list, Ticks ticks) {
            lists_.each(list, [&](Number number) { visit(number, ticks); });
        };
        for (Tick tick = current_; tick < current_ + slots_; ++tick) visit_list(list_at(tick), {tick, tick});
        for (const auto& [group, list] : groups_) visit_list(list, ticks_of(group));
    }

    [[nodiscard]] bool check() const {
        std::size_t chunks = 0;
        for (std::size_t index = 0; index < lists_of_slots_.size(); ++index) {
            const List& list = lists_of_slots_[index];
            if (!lists_.check(list, chunks) || occupied_.test(index) == list.empty()) return false;
        }
        for (const auto& [group, list] : groups_) {
            if (list.empty() || !lists_.check(list, chunks)) return false;
        }
        std::size_t counted = 0;
        each([&](Number, Ticks) { ++counted; });
        return counted == size_ && lists_.check_count(chunks);
    }

   private:
    using List = SlotLists::List;
    using Group = std::int64_t;
    using Groups = std::map<Group, List>;

    static std::int64_t floor_divide(std::int64_t number, std::int64_t by) noexcept {
        return number / by - (number % by < 0);
    }

    /// Groups are a fraction of a turn, so that one fits into the ring long before it is due.
    [[nodiscard]] std::int64_t group_size() const noexcept { return std::max<std::int64_t>(slots_ / 64, 1); }
    [[nodiscard]] Group group_of(Tick tick) const noexcept { return floor_divide(tick, group_size()); }
    [[nodiscard]] Ticks ticks_of(Group group) const noexcept {
        return {group * group_size(), (group + 1) * group_size() - 1};
    }

    /// Of a tick less than a turn ahead.
    [[nodiscard]] std::size_t index_of(Tick tick) const noexcept {
        const std::int64_t index = current_index_ + (tick - current_);
        return static_cast<std::size_t>(index < slots_ ? index : index - slots_);
    }
    [[nodiscard]] List& list_at(Tick tick) noexcept { return lists_of_slots_[index_of(tick)]; }
    [[nodiscard]] const List& list_at(Tick tick) const noexcept { return lists_of_slots_[index_of(tick)]; }

    /// The first tick of this turn, from `tick` on, at which a slot is occupied; or no_tick.
    [[nodiscard]] Tick occupied_from(Tick tick) const noexcept {
        if (tick - current_ >= slots_) return no_tick;
        const std::size_t here = index_of(tick);
        std::size_t next = occupied_.first_from(here);
        if (next == Occupancy::none) next = occupied_.first_from(0);
        if (next == Occupancy::none) return no_tick;
        const auto distance = static_cast<std::int64_t>(next) - static_cast<std::int64_t>(here);
        const Tick found = tick + (distance < 0 ? distance + slots_ : distance);
        return found - current_ < slots_ ? found : no_tick;
    }

    void take(List& list) noexcept {
        if (sweep_.walk && sweep_.walk->is_in(list)) sweep_.walk.reset();
        size_ -= lists_.first_of(list).count;
        lists_.take(list);
    }

    /// False after the last one.
    bool sweep_next_list() noexcept {
        if (!sweep_.in_groups) {
            const Tick tick = occupied_from(std::max(sweep_.ticks.last, current_) + 1);
            if (tick != no_tick) {
                sweep_.ticks = {tick, tick};
                sweep_.walk.emplace(list_at(tick));
                return true;
            }
            sweep_.in_groups = true;
            sweep_.ticks.last = current_;
        }
        const auto group = groups_.upper_bound(group_of(sweep_.ticks.last));
        if (group == groups_.end()) {
            sweep_ = {};
            return false;
        }
        sweep_.ticks = ticks_of(group->first);
        sweep_.walk.emplace(group->second);
        return true;
    }
    bool forget_swept_list_if_empty() noexcept {
        if (sweep_.in_groups) {
            const auto group = groups_.find(group_of(sweep_.ticks.first));
            if (!group->second.empty()) return false;
            groups_.erase(group);
            return true;
        }
        if (!list_at(sweep_.ticks.first).empty()) return false;
        occupied_.reset(index_of(sweep_.ticks.first));
        return true;
    }

    struct Sweep {
        std::optional<SlotLists::Walk> walk;
        bool in_groups = false;
        Ticks ticks{0, std::numeric_limits<Tick>::min()};  // of that list
    };

    std::int64_t slots_;
    SlotLists lists_;
    std::vector<List> lists_of_slots_;
    Occupancy occupied_;
    Groups groups_;
    std::size_t size_ = 0;
    Tick current_ = 0;
    std::int64_t current_index_ = 0;
    Sweep sweep_;
};

}  // namespace vigil
