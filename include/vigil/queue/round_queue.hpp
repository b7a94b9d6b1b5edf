#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vigil/core/hash.hpp>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/key_index.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/round_item.hpp>
#include <vigil/queue/slot_list.hpp>

namespace vigil {

/// Items that are handed out again and again, each time the one that has waited longest: new ones first, in their
/// order, then the least recently taken one, none more often than a period. An item stays until it is removed or its
/// ttl has passed. Pure: it is given the time; if that goes backwards, the latest one seen counts.
///
/// Invariants: an item is found by its id, and is in two lists: the new ones or the taken ones, ordered by (when it was
/// put or last taken, sequence), and all by creation, unless restored ones are still to be put in order; no item is of
/// a time that was not seen, nor of a sequence to come; a slot is in use or on the free list; bytes() counts every id.
/// All calls are O(1), clean() for each item that it removes. put() and restore() leave the queue as it was if memory
/// runs out; nothing else throws. About 105 bytes each beyond the value and a long id. Movable. Memory is kept for new
/// items.
template <class T, class Observer = NoObserver>
class RoundQueue {
    static_assert(std::is_nothrow_default_constructible_v<T>, "a free slot holds a T{}, which should own nothing");
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T>);

   public:
    using Item = RoundItem<T>;
    using View = RoundView<T>;
    using Slot = KeyIndex::Slot;

    explicit RoundQueue(const RoundQueueOptions& options = {}, Observer observer = {})
        : period_(options.dequeue_period.value()),
          ttl_(options.ttl.value()),
          hash_seed_(options.hash_seed),
          observer_(std::move(observer)) {}
    /// `other` becomes an empty queue with the same options.
    RoundQueue(RoundQueue&& other) noexcept
        : period_(other.period_),
          ttl_(other.ttl_),
          hash_seed_(other.hash_seed_),
          observer_(std::move(other.observer_)) {
        swap_contents(other);
    }
    RoundQueue& operator=(RoundQueue&& other) noexcept {
        std::swap(period_, other.period_);
        std::swap(ttl_, other.ttl_);
        std::swap(hash_seed_, other.hash_seed_);
        std::swap(observer_, other.observer_);
        swap_contents(other);
        return *this;
    }
    ~RoundQueue() = default;

    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// Counts those whose ttl has passed, too, until clean() or take() has met them; and find() finds them.
    [[nodiscard]] std::size_t size() const noexcept { return index_.size(); }
    /// Without what the values own.
    [[nodiscard]] std::size_t bytes() const noexcept { return records_.bytes() + index_.bytes() + id_bytes_; }
    [[nodiscard]] Observer& observer() noexcept { return observer_; }

    /// Any bytes are an id. If it is there already, the item gets the new value and is as if it were new, the last one
    /// of the new ones. True if it was not there.
    bool put(TimePoint now, std::string_view id, T&& value) {
        const auto hash = hash_of(id);
        Slot slot = find_slot(hash, id);
        const bool added = slot == no_slot;
        if (added) {
            slot = add_slot(hash, std::string(id));
        } else {
            unlink(slot);
        }
        see(now);
        Record& record = records_[slot];
        // Assigned to, a long string would keep its memory for a short one. The old value goes last: it may change the
        // queue when it is destroyed.
        [[maybe_unused]] const T old = std::exchange(record.value, std::move(value));
        record.created = latest_;
        record.times_taken = 0;
        by_age_.push_back(records_, slot);
        place(slot);
        observer_.changed(slot, view_of(record), added ? Change::added : Change::replaced);
        return added;
    }

    /// Hands out the item whose turn it is, as it is after that, and makes it the last one; nullopt if none is
    /// available. Those that it meets whose ttl has passed are removed: O(1) amortised, since each was put once.
    [[nodiscard]] std::optional<View> take(TimePoint now) noexcept {
        see(now);
        put_in_order();
        for (;;) {
            const bool is_new = !new_.empty();
            const Slot slot = is_new ? new_.first() : taken_.first();
            if (slot == no_slot) return std::nullopt;
            Record& record = records_[slot];
            if (has_expired(record)) {
                (void)remove_slot(slot);
                continue;
            }
            if (!is_new && saturating_add(record.placed, period_) > latest_) return std::nullopt;

            prefetch(&records_[record.follower]);
            prefetch(&records_[record.follower].value);
            order_of(record).remove(records_, slot);
            ++record.times_taken;
            place(slot);
            observer_.changed(slot, view_of(record), Change::moved);
            return view_of(record);
        }
    }

    /// Removes those whose ttl has passed, the oldest first, `limit` of them at most. Returns how many.
    std::size_t clean(TimePoint now, std::size_t limit) noexcept {
        see(now);
        put_in_order();
        std::size_t removed = 0;
        while (removed < limit && !by_age_.empty() && has_expired(records_[by_age_.first()])) {
            (void)remove_slot(by_age_.first());
            ++removed;
        }
        return removed;
    }

    /// Gives the value back; nullopt if there is no such id.
    [[nodiscard]] std::optional<T> remove(std::string_view id) noexcept {
        const Slot slot = find_slot(hash_of(id), id);
        if (slot == no_slot) return std::nullopt;
        return remove_slot(slot);
    }

    [[nodiscard]] std::optional<View> find(std::string_view id) const noexcept {
        const Slot slot = find_slot(hash_of(id), id);
        if (slot == no_slot) return std::nullopt;
        return view_of(records_[slot]);
    }

    /// When take() may succeed: for a new item its creation, which has been. Never late; early if that item's ttl ends
    /// before, or if restored ones are still to be put in order.
    [[nodiscard]] std::optional<TimePoint> next_available() const noexcept {
        if (empty()) return std::nullopt;
        if (!new_.empty()) return records_[new_.first()].created;
        return in_order_ ? saturating_add(records_[taken_.first()].placed, period_) : TimePoint::min();
    }
    /// When clean() has something to do. Early only if restored ones are still to be put in order.
    [[nodiscard]] std::optional<TimePoint> next_expiry() const noexcept {
        if (empty() || ttl_ == Delay::longest) return std::nullopt;
        return in_order_ ? saturating_add(records_[by_age_.first()].created, ttl_) : TimePoint::min();
    }

    /// Puts an item back as it was, and gives its slot; nothing if its id is there already. The items may come in any
    /// order: the next take() or clean() puts them in theirs, O(n log n) that once. A time after `now` counts as now.
    std::optional<Slot> restore(TimePoint now, Item&& item) {
        const auto hash = hash_of(item.id);
        if (find_slot(hash, item.id) != no_slot) return std::nullopt;
        const Slot slot = add_slot(hash, std::move(item.id));
        see(now);
        Record& record = records_[slot];
        record.value = std::move(item.value);
        record.created = std::min(item.created, latest_);
        record.placed = std::min(item.last_taken.value_or(item.created), latest_);
        record.times_taken = item.last_taken ? std::max(item.times_taken, std::uint64_t{1}) : 0;
        record.sequence = item.sequence;
        next_sequence_ = std::max(next_sequence_, item.sequence + 1);
        in_order_ = in_order_ && !is_before(slot, order_of(record).last()) && !is_older(slot, by_age_.last());
        order_of(record).push_back(records_, slot);
        by_age_.push_back(records_, slot);
        return slot;
    }

    [[nodiscard]] bool check() const {
        const auto is_good = [&](Slot slot) {
            const Record& record = records_[slot];
            return record.hash == hash_of(record.id) && find_slot(record.hash, record.id) == slot &&
                   std::max(record.created, record.placed) <= latest_ && record.sequence < next_sequence_;
        };
        const auto news = new_.check(records_, [&](Slot slot, Slot previous) {
            return is_good(slot) && records_[slot].times_taken == 0 && !(in_order_ && is_before(slot, previous));
        });
        const auto taken = taken_.check(records_, [&](Slot slot, Slot previous) {
            return is_good(slot) && records_[slot].times_taken > 0 && !(in_order_ && is_before(slot, previous));
        });
        std::size_t id_bytes = 0;
        const auto all = by_age_.check(records_, [&](Slot slot, Slot previous) {
            id_bytes += bytes_of(records_[slot].id);
            return is_good(slot) && !(in_order_ && is_older(slot, previous));
        });
        const auto free = free_.check(records_, [](Slot, Slot) { return true; });
        return index_.check([&](Slot slot) { return records_[slot].hash; }) && news && taken && all && free &&
               *news + *taken == size() && *all == size() && *free + size() == records_.size() && id_bytes == id_bytes_;
    }

   private:
    static constexpr Slot no_slot = KeyIndex::no_slot;

    // What take() changes comes first, in one cache line or two.
    struct Record {
        SlotLinks order;  // in the new ones, the taken ones or the free list
        SlotLinks age;
        TimePoint created{};
        TimePoint placed{};  // when it was put or last taken
        std::uint64_t sequence = 0;
        std::uint64_t times_taken = 0;
        KeyIndex::Hash hash = 0;
        Slot follower = 0;  // was placed some turns later, so it is probably taken as many turns later
        std::string id;
        T value{};
    };
    using OrderList = SlotList<&Record::order>;

    static View view_of(const Record& record) noexcept {
        return {record.id,          record.value,
                record.created,     record.times_taken > 0 ? std::optional(record.placed) : std::nullopt,
                record.times_taken, record.sequence};
    }
    static std::size_t bytes_of(const std::string& id) noexcept {
        return id.capacity() > std::string{}.capacity() ? id.capacity() + 1 : 0;
    }

    [[nodiscard]] KeyIndex::Hash hash_of(std::string_view id) const noexcept {
        return static_cast<KeyIndex::Hash>(hash_bytes(id, hash_seed_));
    }
    [[nodiscard]] Slot find_slot(KeyIndex::Hash hash, std::string_view id) const noexcept {
        return index_.find(hash, [&](Slot slot) { return records_[slot].id == id; });
    }

    void see(TimePoint now) noexcept { latest_ = std::max(latest_, now); }
    [[nodiscard]] bool has_expired(const Record& record) const noexcept {
        return ttl_ != Delay::longest && saturating_add(record.created, ttl_) <= latest_;
    }

    /// False if there is no other.
    [[nodiscard]] bool is_before(Slot slot, Slot other) const noexcept {
        if (other == no_slot) return false;
        const Record &left = records_[slot], &right = records_[other];
        return std::tie(left.placed, left.sequence) < std::tie(right.placed, right.sequence);
    }
    [[nodiscard]] bool is_older(Slot slot, Slot other) const noexcept {
        return other != no_slot && records_[slot].created < records_[other].created;
    }
    void put_in_order() noexcept {
        if (in_order_) return;
        const auto before = [&](Slot slot, Slot other) { return is_before(slot, other); };
        new_.sort(records_, before);
        taken_.sort(records_, before);
        by_age_.sort(records_, [&](Slot slot, Slot other) { return is_older(slot, other); });
        in_order_ = true;
    }

    /// A slot that is found by that id, but is in no list yet. Takes the id only if it does not throw.
    Slot add_slot(KeyIndex::Hash hash, std::string&& id) {
        const bool reuse = !free_.empty();
        if (!reuse) records_.reserve_more(1);
        const Slot slot = reuse ? free_.last() : static_cast<Slot>(records_.size());
        index_.insert(hash, slot);
        if (reuse) {
            free_.remove(records_, slot);
        } else {
            records_.emplace_back();
        }
        records_[slot].hash = hash;
        records_[slot].id = std::move(id);
        id_bytes_ += bytes_of(records_[slot].id);
        return slot;
    }
    T remove_slot(Slot slot) noexcept {
        Record& record = records_[slot];
        unlink(slot);
        index_.erase(record.hash, slot);
        id_bytes_ -= bytes_of(record.id);
        (void)std::exchange(record.id, {});
        T value = std::exchange(record.value, T{});
        free_.push_back(records_, slot);
        observer_.removed(slot);
        return value;
    }

    OrderList& order_of(const Record& record) noexcept { return record.times_taken == 0 ? new_ : taken_; }
    /// Makes it the last one of the new ones or of the taken ones.
    void place(Slot slot) noexcept {
        Record& record = records_[slot];
        record.placed = latest_;
        record.sequence = next_sequence_++;
        order_of(record).push_back(records_, slot);
        records_[std::exchange(recent_[record.sequence % recent_.size()], slot)].follower = slot;
    }
    void unlink(Slot slot) noexcept {
        order_of(records_[slot]).remove(records_, slot);
        by_age_.remove(records_, slot);
    }
    void swap_contents(RoundQueue& other) noexcept {
        std::swap(records_, other.records_);
        std::swap(index_, other.index_);
        std::swap(new_, other.new_);
        std::swap(taken_, other.taken_);
        std::swap(by_age_, other.by_age_);
        std::swap(free_, other.free_);
        std::swap(id_bytes_, other.id_bytes_);
        std::swap(latest_, other.latest_);
        std::swap(next_sequence_, other.next_sequence_);
        std::swap(in_order_, other.in_order_);
        std::swap(recent_, other.recent_);
    }

    Duration period_;
    Duration ttl_;
    std::uint64_t hash_seed_;
    PagedArray<Record> records_;
    KeyIndex index_;
    OrderList new_;
    OrderList taken_;
    SlotList<&Record::age> by_age_;
    OrderList free_;
    std::size_t id_bytes_ = 0;
    TimePoint latest_ = TimePoint::min();
    std::uint64_t next_sequence_ = 0;
    bool in_order_ = true;
    // The slots that were placed last, or 0, which is always a slot. A list shows its next record too late to fetch it
    // in time; so each record notes the one that was placed eight turns after it.
    std::array<Slot, 8> recent_{};
    [[no_unique_address]] Observer observer_;
};

}  // namespace vigil
