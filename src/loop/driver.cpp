#include <vigil/loop/driver.hpp>

#include <algorithm>
#include <utility>

namespace vigil {

namespace {

// A sink may be slow: so many items, then a look at the clock.
constexpr std::size_t items_between_looks_at_the_clock = 8;

}  // namespace

Driver::Driver(Loop& loop, DriverBudget budget) noexcept : loop_(loop) { set_budget(budget); }

Driver::~Driver() { disarm(); }

void Driver::set_budget(DriverBudget budget) noexcept {
    budget_ = budget;
    budget_.items = std::max<std::size_t>(budget_.items, 1);
}

DriveId Driver::add(std::unique_ptr<Driven> driven) {
    prepare();
    driven->id = DriveId{++last_id_};
    driven_.push_back(std::move(driven));
    const DriveId id = driven_.back()->id;
    changed(id);
    return id;
}

/// While work() goes through the queues none is taken out from under it.
void Driver::remove(DriveId id) noexcept {
    Driven* driven = find(id);
    if (driven == nullptr) return;
    driven->removed = true;
    if (working_) return;
    std::erase_if(driven_, [](const auto& one) { return one->removed; });
    if (!earliest()) disarm();
}

Driver::Driven* Driver::find(DriveId id) const noexcept {
    const auto found = std::find_if(driven_.begin(), driven_.end(), [id](const auto& one) { return one->id == id; });
    return found == driven_.end() || (*found)->removed ? nullptr : found->get();
}

void Driver::changed(DriveId id) {
    const Driven* driven = find(id);
    if (working_ || driven == nullptr || driven->refused) return;
    const auto due = driven->next_due();
    if (due ? *due < armed_for_ : armed_for_ != TimePoint::max() && !earliest()) arm();
}

void Driver::resume(DriveId id) {
    Driven* driven = find(id);
    if (driven == nullptr) return;
    driven->resumed = true;
    if (!std::exchange(driven->refused, false)) return;
    changed(id);
}

/// Of all queues whose sinks can take something.
std::optional<TimePoint> Driver::earliest() const {
    std::optional<TimePoint> earliest;
    for (const auto& driven : driven_) {
        if (driven->refused || driven->removed) continue;
        const auto due = driven->next_due();
        if (due && (!earliest || *due < *earliest)) earliest = due;
    }
    return earliest;
}

void Driver::work() {
    working_ = true;
    try {
        work_within_budget();
    } catch (...) {
        finish_work();
        throw;
    }
    finish_work();
}

void Driver::finish_work() {
    working_ = false;
    std::erase_if(driven_, [](const auto& one) { return one->removed; });
    arm();
}

void Driver::work_within_budget() {
    const TimePoint start = loop_.now();
    TimePoint now = start;
    std::size_t left = budget_.items;
    std::size_t idle = 0;  // how many queues in a row had nothing to do
    while (idle < driven_.size() && left > 0 && now - start <= budget_.time) {
        Driven& driven = *driven_[turn_of_++ % driven_.size()];
        ++idle;
        if (driven.refused || driven.removed) continue;
        const auto due = driven.next_due();
        if (!due || *due > now) continue;
        const std::size_t limit = std::min(left, items_between_looks_at_the_clock);
        driven.resumed = false;
        const Evicted evicted = driven.evict_due(now, limit);
        driven.refused = evicted.refused && !driven.resumed;  // the sink itself may have made room meanwhile
        if (evicted.more) idle = 0;
        left -= evicted.more ? limit : std::min(evicted.items, left);
        now = loop_.now();
    }
}

/// A timer for the earliest due. The loop runs one without delay in its next turn: until then others have theirs.
void Driver::arm() {
    const auto due = earliest();
    if (!due) return disarm();
    const TimePoint now = loop_.now();
    const TimerId timer = loop_.add_timer(*due > now ? *due - now : Duration::zero(), [this] {
        timer_ = {};
        armed_for_ = TimePoint::max();
        work();
    });
    disarm();  // not before there is another
    timer_ = timer;
    armed_for_ = *due;
}

void Driver::disarm() noexcept {
    loop_.cancel_timer(timer_);
    timer_ = {};
    armed_for_ = TimePoint::max();
}

}  // namespace vigil
