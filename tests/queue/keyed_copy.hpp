#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>
#include <vigil/core/time.hpp>
#include <vigil/queue/keyed_item.hpp>
#include <vigil/queue/observer.hpp>

/// Items of a keyed queue, kept, compared and printed by tests.
namespace vigil::testing {

/// A KeyedItem with bytes of its own.
struct ItemCopy {
    std::string key;
    std::string type;
    std::string raw;  // its fragments
    TimePoint due;
    TimePoint first_push;
    std::uint64_t sequence;
    std::uint32_t pushes;
    bool sealed;

    [[nodiscard]] KeyedItem view() const {
        return {key, type, Fragments(raw), due, first_push, sequence, pushes, sealed};
    }
    bool operator==(const ItemCopy&) const = default;
};

inline ItemCopy copy_of(const KeyedItem& item) {
    return {std::string(item.key),
            std::string(item.type),
            std::string(item.data.raw()),
            item.due,
            item.first_push,
            item.sequence,
            item.pushes,
            item.sealed};
}

inline bool same_but_for_sequence(const KeyedItem& one, const KeyedItem& other) {
    return one.key == other.key && one.type == other.type && one.data.raw() == other.data.raw() &&
           one.due == other.due && one.first_push == other.first_push && one.pushes == other.pushes &&
           one.sealed == other.sealed;
}

inline void append_fragment(std::string& raw, std::string_view fragment) {
    const auto length = static_cast<std::uint32_t>(fragment.size());
    raw.append(reinterpret_cast<const char*>(&length), sizeof length);
    raw.append(fragment);
}

/// "key=fragment,fragment"
inline std::string text(const KeyedItem& item) {
    std::string text(item.key);
    for (auto fragment = item.data.begin(); fragment != item.data.end(); ++fragment) {
        text += fragment == item.data.begin() ? '=' : ',';
        text += *fragment;
    }
    return text;
}

inline std::ostream& operator<<(std::ostream& out, const ItemCopy& item) {
    return out << text(item.view()) << " (" << item.type << ") due " << item.due.time_since_epoch().count() << " first "
               << item.first_push.time_since_epoch().count() << " sequence " << item.sequence << " pushes "
               << item.pushes << (item.sealed ? " sealed" : "");
}

/// All items in the order in which they fall due.
template <class Queue>
std::vector<ItemCopy> items_of(const Queue& queue) {
    std::vector<ItemCopy> items;
    queue.each_by_due([&](const KeyedItem& item) {
        items.push_back(copy_of(item));
        return true;
    });
    return items;
}

/// An observer that knows the items from what it is told, and of each change looks only at what that may have changed.
class Mirror {
   public:
    void changed(std::uint32_t slot, const KeyedItem& item, Change change) {
        if (change == Change::added) {
            right_ = right_ && !item.sealed && item.pushes == 1 && items_.count(slot) == 0;
            items_[slot] = copy_of(item);
            return;
        }
        right_ = right_ && items_.count(slot) == 1;
        ItemCopy& known = items_[slot];
        if (change == Change::replaced) known.raw = item.data.raw();
        if (change == Change::appended) append_fragment(known.raw, last_of(item.data));
        if (change == Change::replaced || change == Change::appended) known.type = item.type;
        if (change == Change::sealed) known.sealed = true;
        known.due = item.due;
        known.sequence = item.sequence;
        known.pushes = item.pushes;
        right_ = right_ && known == copy_of(item);
    }
    void removed(std::uint32_t slot) { right_ = right_ && items_.erase(slot) == 1; }

    /// In the order in which they fall due.
    [[nodiscard]] std::vector<ItemCopy> items() const {
        return sorted([](const ItemCopy& one, const ItemCopy& other) {
            return one.due != other.due ? one.due < other.due : one.sequence < other.sequence;
        });
    }
    [[nodiscard]] std::vector<ItemCopy> items_by_sequence() const {
        return sorted([](const ItemCopy& one, const ItemCopy& other) { return one.sequence < other.sequence; });
    }
    /// False if it was told of a slot what cannot be.
    [[nodiscard]] bool right() const { return right_; }

   private:
    static std::string_view last_of(Fragments fragments) {
        std::string_view last;
        for (const std::string_view fragment : fragments) last = fragment;
        return last;
    }
    template <class Less>
    [[nodiscard]] std::vector<ItemCopy> sorted(Less less) const {
        std::vector<ItemCopy> items;
        for (const auto& [slot, item] : items_) items.push_back(item);
        std::sort(items.begin(), items.end(), less);
        return items;
    }

    std::map<std::uint32_t, ItemCopy> items_;
    bool right_ = true;
};

}  // namespace vigil::testing
