#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vigil/core/hash.hpp>
#include <vigil/core/prefetch.hpp>
#include <vigil/core/time.hpp>
#include <vigil/queue/free_slots.hpp>
#include <vigil/queue/key_index.hpp>
#include <vigil/queue/keyed_data.hpp>
#include <vigil/queue/keyed_item.hpp>
#include <vigil/queue/observer.hpp>
#include <vigil/queue/paged_array.hpp>
#include <vigil/queue/schedule.hpp>
#include <vigil/queue/timed_queue.hpp>

namespace vigil {

/// Items by key that fall due: a push of a key that is there already updates its item; what is due is evicted, the
/// lowest due first, equal ones in order of arrival. A TimedQueue.
///
/// It is the PriorityHashQueue of the seed, a min-heap and two maps:
///
///     PriorityQueue<Key, Prio> q    schedule_                a min-heap; rings park what is due later
///     ArrayObject<Key, Prio>   p    index_ -> Slot::priority
///     ArrayObject<Key, Data>   d    index_ -> Slot::data
///
/// The two maps share one index of keys, and the priority and the data of a key lie side by side: one search instead of
/// two, one cache miss instead of four, two thirds of the memory. And the heap has one entry for each item, not one for
/// each push: a key that moves later changes only its priority, and its entry moves when its old due comes up (re-arm);
/// one that moves earlier moves its entry at once. So no stale entry can cost an eviction or delay another item.
///
/// Times are parameters; `now` should not go backwards. A due in the past is evicted next, in order. Keys and data are
/// any bytes, may be empty, and up to 4 GiB; a type up to 65535 bytes: more is a std::length_error.
///
/// Invariants: each item has one entry in the schedule, at its due or earlier; the index finds each item by its key,
/// except those that are sealed; a slot is in use or on the free list; bytes() counts every block; the KeyedData of
/// each item is sound.
/// push, cancel, find, reschedule: O(1) expected, O(log n) while there are fewer than 1000 items or the due is months
/// away; evict: the same, amortised. No call that changes the queue takes long because that is large: it grows in
/// pieces; only evict() and earliest() have no limit. All leave the queue as it was if memory runs out. Move-only.
/// Memory of items that have left is kept for those to come.
template <class Observer = NoObserver>
class BasicPriorityHashQueue {
   public:
    using SlotNumber = Schedule::Slot;

    /// `hash_seed`: a fixed one is for tests only.
    explicit BasicPriorityHashQueue(Observer observer = {}, std::uint64_t hash_seed = random_seed())
        : observer_(std::move(observer)), hash_seed_(hash_seed) {}
    BasicPriorityHashQueue(BasicPriorityHashQueue&& other) noexcept
        : observer_(std::move(other.observer_)), hash_seed_(other.hash_seed_) {
        swap_contents(other);
    }
    BasicPriorityHashQueue& operator=(BasicPriorityHashQueue&& other) noexcept {
        swap_contents(other);
        std::swap(observer_, other.observer_);
        std::swap(hash_seed_, other.hash_seed_);
        return *this;
    }
    ~BasicPriorityHashQueue() {
        for (std::size_t number = 0; number < slots_.size(); ++number) slots_[number].data.bytes.clear();
    }

    [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - free_.size(); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// Memory in use, or kept for use.
    [[nodiscard]] std::size_t bytes() const noexcept {
        return schedule_.bytes() + index_.bytes() + slots_.bytes() + outside_bytes_;
    }
    /// Entries of the schedule: as many as items, however often those are pushed and moved; and of those that were
    /// cancelled when their time had come already at most as many again, and a thousand.
    [[nodiscard]] std::size_t entries() const noexcept { return schedule_.entries(); }

    /// What pushes of `options.type` do unless they say otherwise; without a type, what all pushes do.
    void set_defaults(const PushOptions& options) {
        if (options.type.empty()) {
            queue_rules_ = Rules{}.with(options);
        } else {
            PushOptions& kept = type_options_[std::string(options.type)];
            kept = options;
            kept.type = {};
        }
    }

    /// What a push did.
    struct Pushed {
        bool inserted = false;  ///< a new item was made
        bool sealed = false;    ///< a cap was reached: some item was sealed
    };

    /// Inserts an item, or updates that of the key.
    Pushed push(TimePoint now, std::string_view key, std::string_view data, TimePoint due,
                const PushOptions& options = default_push) {
        const Hash hash = hash_of(key);
        const SlotNumber number = find_any(hash, key);
        if (number != no_slot && update_in_place(number, slots_[number], data, due, options)) return {};
        return push(now, hash, number, {key, data, due, options});
    }

    /// The same for each of them in turn, but faster: memory is fetched ahead. Gives how many were pushed: all, unless
    /// one cannot be, because memory runs out or it is too long. Throws if that is the first.
    std::size_t push(TimePoint now, std::span<const Push> pushes);

    /// The item with the lowest due if that is not after `now`. It puts all in order that falls due in the same
    /// millisecond; evict_due() does so in pieces.
    std::optional<EvictedItem> evict(TimePoint now) {
        std::optional<EvictedItem> evicted;
        while (evict_due(now, 1, [&](const KeyedItem& item) { evicted.emplace(item); }).more && !evicted) continue;
        return evicted;
    }

    /// Hands items that are due to `sink(const KeyedItem&)`: see TimedQueue. In the sink the item has left already: a
    /// push of its key opens a new one.
    template <class Sink>
    Evicted evict_due(TimePoint now, std::size_t limit, Sink&& sink);

    /// False if there is no such key.
    bool cancel(std::string_view key) noexcept {
        const SlotNumber number = find_slot(hash_of(key), key);
        if (number == no_slot) return false;
        erase(number);
        return true;
    }

    /// Moves an item to a new due, behind those that have the same. False if there is no such key.
    bool reschedule(TimePoint now, std::string_view key, TimePoint due) {
        const SlotNumber number = find_slot(hash_of(key), key);
        if (number == no_slot) return false;
        schedule_.reserve_more(1);
        move(now, number, due);
        observer_.changed(number, item(number), Change::moved);
        return true;
    }

    [[nodiscard]] std::optional<KeyedItem> find(std::string_view key) const noexcept {
        const SlotNumber number = find_slot(hash_of(key), key);
        if (number == no_slot) return std::nullopt;
        return item(number);
    }

    /// When there may be something to evict: early perhaps, late never.
    [[nodiscard]] std::optional<TimePoint> next_due() const noexcept { return schedule_.next_due(); }
    /// The item that comes next, exactly. Cheap if it is in order already and was not moved later since; else it costs
    /// what each_by_due() does for the first one.
    [[nodiscard]] std::optional<KeyedItem> earliest() const {
        const auto first = schedule_.earliest(owner());
        if (!first) return std::nullopt;
        return item(first->slot);
    }

    /// Calls `visit(const KeyedItem&)` for the items in the order in which they fall due, until it returns false. It
    /// must not change the queue. Looks at all that is due by now or in a heap, and at those of the same bucket (1 ms
    /// if due soon).
    template <class Visit>
    void each_by_due(Visit&& visit) const {
        schedule_.each_by_due(owner(), [&](const Schedule::Entry& entry) { return offer_to(visit, item(entry.slot)); });
    }

    /// How many items fall due in each of `count` buckets from `now` on. Looks at `limit` slots; if that is not all of
    /// them, forecast_more() goes on. What changes meanwhile may be counted or not.
    [[nodiscard]] Forecast forecast(TimePoint now, Duration bucket, std::size_t count,
                                    std::size_t limit = std::numeric_limits<std::size_t>::max()) const {
        Forecast forecast{now, std::max(bucket, Duration{1}), std::vector<std::size_t>(count)};
        forecast_more(forecast, limit);
        return forecast;
    }
    /// Goes on counting; false if that was the end.
    bool forecast_more(Forecast& forecast, std::size_t limit) const;

    /// Puts an item back as it was seen by an observer or a sink; its sequence is new. Gives its slot; nothing if its
    /// key is there already.
    std::optional<SlotNumber> restore(TimePoint now, const KeyedItem& item);

    [[nodiscard]] Observer& observer() noexcept { return observer_; }
    [[nodiscard]] bool check() const;

   private:
    using Hash = KeyIndex::Hash;
    static constexpr SlotNumber no_slot = KeyIndex::no_slot;

    /// key -> priority
    struct Priority {
        TimePoint due{};
        std::uint64_t sequence = 0;
        TimePoint armed{};              // when its entry comes up; not later than due
        std::uint32_t place = no_slot;  // in the schedule; of a free slot: the link to another
        Hash hash = 0;
    };

    enum class State : std::uint8_t {
        free,
        open,     // the index finds it
        leaving,  // still in the index, but a sink has it
        sealed,   // not in the index
    };

    /// key -> data
    struct Data {
        TimePoint first_push{};
        std::uint32_t pushes = 0;
        KeyedData bytes;
        State state = State::free;

        void count_push() noexcept {
            if (pushes != std::numeric_limits<std::uint32_t>::max()) ++pushes;
        }
    };

    struct alignas(128) Slot {  // two cache lines that the processor fetches together
        Priority priority;
        Data data;
    };
    static_assert(sizeof(Slot) == 128);
    using Slots = PagedArray<Slot>;

    /// PushOptions with all defaults filled in.
    struct Rules {
        DataMode mode = DataMode::replace;
        Expiry expiry = Expiry::restart;
        bool plain = true;    // whether all is as it is here
        bool capped = false;  // whether any of these is less than here
        std::uint32_t max_count = std::numeric_limits<std::uint32_t>::max();
        std::size_t max_bytes = std::numeric_limits<std::size_t>::max();
        Duration max_wait = Duration::max();

        [[nodiscard]] Rules with(const PushOptions& options) const noexcept {
            Rules rules = *this;
            rules.mode = options.mode.value_or(mode);
            rules.expiry = options.expiry.value_or(expiry);
            rules.max_count = options.max_count.value_or(max_count);
            rules.max_bytes = options.max_bytes.value_or(max_bytes);
            rules.max_wait = std::max(options.max_wait.value_or(max_wait), Duration::zero());
            const Rules none;
            rules.capped =
                rules.max_count < none.max_count || rules.max_bytes < none.max_bytes || rules.max_wait < none.max_wait;
            rules.plain = !rules.capped && rules.mode == none.mode && rules.expiry == none.expiry;
            return rules;
        }
    };

    template <class AnySlots>
    struct Owner {
        AnySlots& slots;
        const KeyIndex& index;

        [[nodiscard]] Schedule::Entry entry(SlotNumber number) const noexcept {
            const Priority& priority = slots[number].priority;
            return {priority.due, priority.sequence, number};
        }
        [[nodiscard]] TimePoint armed(SlotNumber number) const noexcept { return slots[number].priority.armed; }
        void rearmed(SlotNumber number) const noexcept {
            Priority& priority = slots[number].priority;
            priority.armed = priority.due;
            index.prefetch(priority.hash);
        }
        void moved(SlotNumber number, Schedule::Place place) const noexcept {
            slots[number].priority.place = static_cast<std::uint32_t>(place);
        }
        [[nodiscard]] Schedule::Place place(SlotNumber number) const noexcept {
            return Schedule::Place{slots[number].priority.place};
        }
        void prefetch(SlotNumber number) const noexcept { prefetch_slot(slots[number]); }
    };
    [[nodiscard]] Owner<Slots> owner() noexcept { return {slots_, index_}; }
    [[nodiscard]] Owner<const Slots> owner() const noexcept { return {slots_, index_}; }

    static void prefetch_slot(const Slot& slot) noexcept {
        const char* lines = reinterpret_cast<const char*>(&slot);
        prefetch(lines);
        prefetch(lines + 64);
    }

    [[nodiscard]] Hash hash_of(std::string_view key) const noexcept {
        return static_cast<Hash>(hash_bytes(key, hash_seed_));
    }
    [[nodiscard]] SlotNumber find_any(Hash hash, std::string_view key) const noexcept {
        return index_.find(hash, [&](SlotNumber number) { return slots_[number].data.bytes.has_key(key); });
    }
    [[nodiscard]] static bool is_open(const Slot& slot, std::string_view key) noexcept {
        return slot.data.state == State::open && slot.data.bytes.has_key(key);
    }
    [[nodiscard]] SlotNumber find_slot(Hash hash, std::string_view key) const noexcept {
        const SlotNumber number = find_any(hash, key);
        return number != no_slot && slots_[number].data.state == State::leaving ? no_slot : number;
    }
    [[nodiscard]] KeyedItem item(SlotNumber number) const noexcept {
        const auto& [priority, data] = slots_[number];
        return {data.bytes.key(),  data.bytes.type(), data.bytes.fragments(),     priority.due, data.first_push,
                priority.sequence, data.pushes,       data.state == State::sealed};
    }

    [[nodiscard]] Rules rules_for(const PushOptions& options) const {
        const auto of_type = type_options_.find(options.type);
        return (of_type == type_options_.end() ? queue_rules_ : queue_rules_.with(of_type->second)).with(options);
    }
    [[nodiscard]] bool queue_rules_apply(const PushOptions& options) const noexcept {
        // Without branches: this is asked for every push.
        const bool none = !(options.mode.has_value() | options.expiry.has_value() | options.max_wait.has_value() |
                            options.max_count.has_value() | options.max_bytes.has_value());
        return none && (options.type.empty() || type_options_.empty());
    }

    struct Message {
        std::string_view key;
        std::string_view data;
        TimePoint due;
        const PushOptions& options;
    };
    Pushed push(TimePoint now, Hash hash, SlotNumber number, const Message& message);
    Pushed push(TimePoint now, Hash hash, SlotNumber number, const Message& message, const Rules& rules);
    Pushed open(TimePoint now, Hash hash, SlotNumber old, const Message& message, const Rules& rules);
    Pushed update(TimePoint now, SlotNumber number, const Message& message, const Rules& rules);

    [[nodiscard]] static TimePoint latest_due(TimePoint first_push, const Rules& rules) noexcept {
        return rules.max_wait == Duration::max() ? TimePoint::max() : saturating_add(first_push, rules.max_wait);
    }
    [[nodiscard]] static bool must_open_new(const Data& data, TimePoint now, const Message& message,
                                            const Rules& rules) {
        if (data.state == State::leaving) return true;
        if (!rules.capped) return false;
        if (rules.max_wait != Duration::max() && latest_due(data.first_push, rules) <= now) return true;
        return rules.mode == DataMode::append &&
               message.data.size() > rules.max_bytes - std::min(data.bytes.data_size(), rules.max_bytes);
    }
    [[nodiscard]] static bool is_full(const Data& data, const Rules& rules) noexcept {
        return rules.capped && (data.pushes >= rules.max_count || data.bytes.data_size() >= rules.max_bytes);
    }

    /// The most common of all pushes, in a third of the instructions: a key is there, and moves later.
    bool update_in_place(SlotNumber number, Slot& slot, std::string_view data, TimePoint due,
                         const PushOptions& options) noexcept {
        auto& [priority, item_data] = slot;
        const bool plain = queue_rules_.plain && may_stay(priority, due) && item_data.state == State::open &&
                           queue_rules_apply(options) && item_data.bytes.try_replace(options.type, data);
        if (!plain) return false;
        item_data.count_push();
        priority.due = due;
        priority.sequence = next_sequence_++;
        observer_.changed(number, item(number), Change::replaced);
        return true;
    }

    /// Room in the schedule must be reserved if it moves to before where its entry stands.
    void move(TimePoint now, SlotNumber number, TimePoint due) noexcept {
        Priority& priority = slots_[number].priority;
        priority.sequence = next_sequence_++;
        priority.due = due;
        if (!may_stay(priority, due)) rearm(now, number);
    }
    /// Whether its entry may stay where it is when it moves.
    static bool may_stay(const Priority& priority, TimePoint due) noexcept {
        return due >= priority.armed && Schedule::may_rearm(Schedule::Place{priority.place});
    }
    void rearm(TimePoint now, SlotNumber number) noexcept {
        schedule_.remove(number, owner());
        slots_[number].priority.armed = slots_[number].priority.due;
        schedule_.push(now, owner().entry(number), owner());
    }
    /// Likewise. The index must not find it any more.
    void seal(TimePoint now, SlotNumber number) noexcept {
        Slot& slot = slots_[number];
        slot.data.state = State::sealed;
        if (slot.priority.due > now) move(now, number, now);
        observer_.changed(number, item(number), Change::sealed);
    }

    SlotNumber acquire() {
        if (free_.empty()) {
            slots_.emplace_back();
            return static_cast<SlotNumber>(slots_.size() - 1);
        }
        const auto [number, coming] = free_.pop([&](SlotNumber free) { return slots_[free].priority.place; });
        if (coming != no_slot) prefetch_slot(slots_[coming]);
        return number;
    }
    void release(SlotNumber number) noexcept {
        Slot& slot = slots_[number];
        outside_bytes_ -= slot.data.bytes.outside_bytes();
        slot.data.bytes.clear();
        slot.data.state = State::free;
        free_.push(number, slot.priority.place);
    }
    void erase(SlotNumber number) noexcept {
        const auto& [priority, data] = slots_[number];
        schedule_.remove(number, owner());
        if (data.state != State::sealed) index_.erase(priority.hash, number);
        release(number);
        observer_.removed(number);
    }

    void swap_contents(BasicPriorityHashQueue& other) noexcept {
        std::swap(schedule_, other.schedule_);
        std::swap(index_, other.index_);
        std::swap(slots_, other.slots_);
        std::swap(free_, other.free_);
        std::swap(next_sequence_, other.next_sequence_);
        std::swap(outside_bytes_, other.outside_bytes_);
        std::swap(queue_rules_, other.queue_rules_);
        std::swap(type_options_, other.type_options_);
    }

    Schedule schedule_;
    KeyIndex index_;
    Slots slots_;

    FreeSlots free_;
    std::uint64_t next_sequence_ = 0;
    std::size_t outside_bytes_ = 0;
    bool evicting_ = false;
    Rules queue_rules_;
    std::map<std::string, PushOptions, std::less<>> type_options_;
    [[no_unique_address]] Observer observer_;
    std::uint64_t hash_seed_;
};

using PriorityHashQueue = BasicPriorityHashQueue<>;

}  // namespace vigil

#include <vigil/queue/priority_hash_queue.inl>
