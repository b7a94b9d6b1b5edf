#pragma once

#include <cstddef>
#include <utility>
#include <vigil/queue/sorted_runs.hpp>

namespace vigil {

/// The entries of opened buckets, in order, for Schedule. One that its owner removes stays until it comes up or is
/// cleared away: `is_there(entry)` tells which ones were not removed.
///
/// Invariants: size() counts those that are there. Of the others there are at most as many, and a thousand: once they
/// are half of that, each remove() clears away more than one. Only reserve_more() throws, and what was not reserved
/// for.
template <class Entry>
class OpenedEntries {
   public:
    OpenedEntries() noexcept = default;
    OpenedEntries(OpenedEntries&& other) noexcept { *this = std::move(other); }
    OpenedEntries& operator=(OpenedEntries&& other) noexcept {
        std::swap(runs_, other.runs_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~OpenedEntries() = default;

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t removed() const noexcept { return runs_.size() - size_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return runs_.bytes(); }

    /// Not after any that is there; null if there are none.
    [[nodiscard]] const Entry* lower_bound() const noexcept {
        if (size_ == 0) return nullptr;
        const Entry* gathered = runs_.least_of_open_run();
        if (runs_.empty()) return gathered;
        return gathered == nullptr || runs_.top() < *gathered ? &runs_.top() : gathered;
    }
    /// The first that is there, exactly; or null.
    template <class IsThere>
    [[nodiscard]] const Entry* earliest(IsThere&& is_there) const {
        return size_ == 0 ? nullptr : runs_.least(is_there);
    }

    /// The next `count` calls of gather(), and the close() after them, cannot fail.
    void reserve_more(std::size_t count) { runs_.reserve_more(count); }
    /// Adds one. close() puts those that were gathered in order.
    void gather(const Entry& entry) {
        runs_.gather(entry);
        ++size_;
    }
    void close() { runs_.close(); }

    /// The owner has removed one, or taken it.
    template <class IsThere>
    void remove(IsThere&& is_there) noexcept {
        --size_;
        if (!runs_.empty() && !is_there(runs_.top())) {
            runs_.pop();
        } else if (removed() > size_ / 2 + 500) {
            runs_.sweep(is_there);
        }
    }

    /// Drops removed ones from the front, each for one of `limit`. False if the limit was reached.
    template <class IsThere>
    bool drop_removed(std::size_t& limit, IsThere&& is_there) noexcept {
        for (; !runs_.empty() && !is_there(runs_.top()); --limit) {
            if (limit == 0) return false;
            runs_.pop();
        }
        return true;
    }
    /// The first of those that are in order, there or not; or null.
    [[nodiscard]] const Entry* first() const noexcept { return runs_.empty() ? nullptr : &runs_.top(); }
    [[nodiscard]] bool all_in_order() const noexcept { return runs_.size_of_open_run() == 0; }

    template <class Visit>
    void each(Visit&& visit) const {
        runs_.each(visit);
    }

    template <class IsThere>
    [[nodiscard]] bool check(IsThere&& is_there) const {
        std::size_t counted = 0;
        runs_.each([&](const Entry& entry) { counted += is_there(entry); });
        return counted == size_ && removed() <= size_ + 1000 && runs_.check();
    }

   private:
    SortedRuns<Entry> runs_;
    std::size_t size_ = 0;  // without those that were removed
};

}  // namespace vigil
