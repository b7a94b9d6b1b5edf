// The longer members of BasicPriorityHashQueue; included by its header.

namespace vigil {

/// `number`: the slot of the key, or none.
template <class Observer>
auto BasicPriorityHashQueue<Observer>::push(TimePoint now, Hash hash, SlotNumber number, const Message& message)
    -> Pushed {
    if (queue_rules_apply(message.options)) return push(now, hash, number, message, queue_rules_);
    return push(now, hash, number, message, rules_for(message.options));
}

template <class Observer>
auto BasicPriorityHashQueue<Observer>::push(TimePoint now, Hash hash, SlotNumber number, const Message& message,
                                            const Rules& rules) -> Pushed {
    if (number == no_slot || must_open_new(slots_[number].data, now, message, rules)) {
        return open(now, hash, number, message, rules);
    }
    return update(now, number, message, rules);
}

template <class Observer>
std::size_t BasicPriorityHashQueue<Observer>::push(TimePoint now, std::span<const Push> pushes) {
    constexpr std::size_t ahead = 16;
    struct Coming {
        KeyIndex::Probe probe;
        SlotNumber guess;  // where the key probably is, or no_slot
        Slot* guessed;     // that slot
    };
    Coming coming[ahead];  // not cleared for nothing
    std::size_t done = 0;
    while (done < pushes.size()) {
        const auto group = pushes.subspan(done, std::min(ahead, pushes.size() - done));
        for (std::size_t index = 0; index < group.size(); ++index) {
            coming[index].probe = index_.probe(hash_of(group[index].key));
        }
        bool new_keys = false;
        for (std::size_t index = 0; index < group.size(); ++index) {
            auto& [probe, guess, guessed] = coming[index];
            guess = index_.guess(probe);
            if (guess != no_slot) {
                guessed = &slots_[guess];
                prefetch_slot(*guessed);
            } else {
                schedule_.prefetch_first(group[index].due);
                new_keys = true;
            }
        }
        for (std::size_t index = 0; new_keys && index < group.size(); ++index) {
            if (coming[index].guess == no_slot) schedule_.prefetch_second(group[index].due);
        }
        for (std::size_t index = 0; index < group.size(); ++index) {
            try {
                const auto& [key, data, due, options] = group[index];
                const auto& [probe, guess, guessed] = coming[index];
                const bool known = guess != no_slot && is_open(*guessed, key);
                if (!known || !update_in_place(guess, *guessed, data, due, options)) {
                    push(now, probe.hash, known ? guess : find_any(probe.hash, key), {key, data, due, options});
                }
            } catch (const std::exception&) {  // bad_alloc or length_error
                if (done == 0) throw;
                return done;
            }
            ++done;
        }
    }
    return done;
}

/// `old`: the item of that key, which has to be sealed, or none.
template <class Observer>
auto BasicPriorityHashQueue<Observer>::open(TimePoint now, Hash hash, SlotNumber old, const Message& message,
                                            const Rules& rules) -> Pushed {
    if (old != no_slot || rules.capped)
        schedule_.reserve_more(3);  // the old one moves, the new one comes, and may move
    const SlotNumber number = acquire();
    Slot& slot = slots_[number];
    try {
        slot.data.bytes.assign(message.key, message.options.type, message.data);
        outside_bytes_ += slot.data.bytes.outside_bytes();
        if (old == no_slot) index_.insert(hash, number);
    } catch (...) {
        release(number);
        throw;
    }
    Pushed pushed{.inserted = true, .sealed = old != no_slot};
    if (old != no_slot) {
        index_.replace(hash, old, number);
        seal(now, old);
    }
    const TimePoint due = std::min(message.due, latest_due(now, rules));
    slot.priority = {due, next_sequence_, due, no_slot, hash};
    try {
        schedule_.push(now, owner().entry(number), owner());
    } catch (...) {  // nothing was reserved, so there was no old one
        index_.erase(hash, number);
        release(number);
        throw;
    }
    ++next_sequence_;
    slot.data.first_push = now;
    slot.data.pushes = 1;
    slot.data.state = State::open;
    observer_.changed(number, item(number), Change::added);
    if (is_full(slot.data, rules)) {
        index_.erase(hash, number);
        seal(now, number);
        pushed.sealed = true;
    }
    return pushed;
}

template <class Observer>
auto BasicPriorityHashQueue<Observer>::update(TimePoint now, SlotNumber number, const Message& message,
                                              const Rules& rules) -> Pushed {
    auto& [priority, data] = slots_[number];
    TimePoint due = rules.expiry == Expiry::restart ? message.due : priority.due;
    if (rules.expiry == Expiry::earliest) due = std::min(due, message.due);
    if (rules.capped) due = std::min(due, latest_due(data.first_push, rules));

    if (rules.capped || !may_stay(priority, due)) schedule_.reserve_more(2);  // it moves, and may be sealed
    if (rules.mode != DataMode::keep_first) {
        const std::size_t before = data.bytes.outside_bytes();
        if (rules.mode == DataMode::replace) data.bytes.replace(message.options.type, message.data);
        if (rules.mode == DataMode::append) data.bytes.append(message.options.type, message.data);
        outside_bytes_ += data.bytes.outside_bytes() - before;
    }
    data.count_push();
    if (rules.expiry == Expiry::restart || due != priority.due) move(now, number, due);

    constexpr Change changes[] = {Change::replaced, Change::appended, Change::moved};
    observer_.changed(number, item(number), changes[static_cast<std::size_t>(rules.mode)]);
    if (!is_full(data, rules)) return {};
    index_.erase(priority.hash, number);
    seal(now, number);
    return {.inserted = false, .sealed = true};
}

template <class Observer>
template <class Sink>
Evicted BasicPriorityHashQueue<Observer>::evict_due(TimePoint now, std::size_t limit, Sink&& sink) {
    /// While a sink has an item: if it throws or refuses, the item is as it was, but for a new one of its key.
    struct Leaving {
        State& state;
        explicit Leaving(State& of_item) noexcept : state(of_item), was(of_item) {
            if (state == State::open) state = State::leaving;
        }
        ~Leaving() {
            if (state == State::leaving) state = was;
        }
        const State was;
    };
    Evicted evicted;
    if (std::exchange(evicting_, true)) return evicted;
    struct Done {
        bool& evicting;
        ~Done() { evicting = false; }
    } const done{evicting_};

    while (limit > 0) {
        const Schedule::Entry* first = schedule_.first(now, limit, owner());
        if (first == nullptr) break;
        const SlotNumber number = first->slot;
        {
            const Leaving leaving(slots_[number].data.state);
            evicted.refused = !offer_to(sink, std::as_const(*this).item(number));
        }
        if (evicted.refused) return evicted;
        erase(number);
        ++evicted.items;
        if (limit > 0) --limit;
    }
    evicted.more = limit == 0;
    return evicted;
}

template <class Observer>
bool BasicPriorityHashQueue<Observer>::forecast_more(Forecast& forecast, std::size_t limit) const {
    const std::size_t end =
        forecast.looked_at + std::min(limit, slots_.size() - std::min(forecast.looked_at, slots_.size()));
    for (; forecast.looked_at < end; ++forecast.looked_at) {
        const auto& [priority, data] = slots_[forecast.looked_at];
        if (data.state == State::free) continue;
        // In unsigned numbers: from one end of time to the other is more than a Duration holds.
        const auto since = static_cast<std::uint64_t>(priority.due.time_since_epoch().count()) -
                           static_cast<std::uint64_t>(forecast.start.time_since_epoch().count());
        const auto bucket =
            priority.due <= forecast.start ? 0 : since / static_cast<std::uint64_t>(forecast.bucket.count());
        ++(bucket < forecast.counts.size() ? forecast.counts[bucket] : forecast.later);
    }
    return forecast.looked_at < slots_.size();
}

template <class Observer>
auto BasicPriorityHashQueue<Observer>::restore(TimePoint now, const KeyedItem& item) -> std::optional<SlotNumber> {
    const Hash hash = hash_of(item.key);
    if (!item.sealed && find_any(hash, item.key) != no_slot) return std::nullopt;
    schedule_.reserve_more(1);
    const SlotNumber number = acquire();
    Slot& slot = slots_[number];
    try {
        slot.data.bytes.assign(item.key, item.type, item.data);
        outside_bytes_ += slot.data.bytes.outside_bytes();
        if (!item.sealed) index_.insert(hash, number);
    } catch (...) {
        release(number);
        throw;
    }
    slot.data.first_push = item.first_push;
    slot.data.pushes = item.pushes;
    slot.data.state = item.sealed ? State::sealed : State::open;
    slot.priority = {item.due, next_sequence_++, item.due, no_slot, hash};
    schedule_.push(now, owner().entry(number), owner());
    return number;
}

template <class Observer>
bool BasicPriorityHashQueue<Observer>::check() const {
    if (!schedule_.check(owner()) || !index_.check([&](SlotNumber number) { return slots_[number].priority.hash; })) {
        return false;
    }
    std::size_t used = 0, found = 0, outside = 0;
    for (std::size_t number = 0; number < slots_.size(); ++number) {
        const auto& [priority, data] = slots_[number];
        if (data.state == State::free) continue;
        if (!data.bytes.check()) return false;
        ++used;
        outside += data.bytes.outside_bytes();
        if (data.state == State::sealed) continue;
        ++found;
        if (find_any(priority.hash, data.bytes.key()) != number) return false;
    }
    const bool free_are_free = free_.check([&](SlotNumber number) { return slots_[number].priority.place; },
                                           [&](SlotNumber number) { return slots_[number].data.state == State::free; });
    return used == schedule_.size() && found == index_.size() && used + free_.size() == slots_.size() &&
           free_are_free && outside == outside_bytes_;
}

}  // namespace vigil
