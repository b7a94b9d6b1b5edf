#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include <vigil/core/time.hpp>

namespace vigil {

/// What a push does to the data of the item that its key already has.
enum class DataMode : std::uint8_t {
    replace,     ///< the new data takes its place
    append,      ///< the new data follows it, as one more fragment
    keep_first,  ///< the new data is dropped; the type stays too
};

/// What a push does to the due of the item that its key already has.
enum class Expiry : std::uint8_t {
    restart,   ///< the new due counts
    keep,      ///< the old due counts
    earliest,  ///< the earlier of the two counts
};

/// How a push is treated. What is not said is taken from the defaults for its type, then from those of the queue, then
/// from here: replace, restart, no caps.
///
/// A cap seals an item: it is due at once, its key does not find or cancel it any more, and the next push of the key
/// opens a new item.
struct PushOptions {
    std::string_view type = {};  ///< at most 65535 bytes; an item has that of the last push
    std::optional<DataMode> mode = {};
    std::optional<Expiry> expiry = {};
    std::optional<Duration> max_wait = {};        ///< no due is later than this after the first push of an item; a
                                                  ///< push after that moment seals it and opens a new one
    std::optional<std::uint32_t> max_count = {};  ///< an item is sealed when it stands for so many pushes
    std::optional<std::size_t> max_bytes = {};    ///< likewise so many bytes of data; an append that would pass it
                                                  ///< seals the item first and opens a new one
};

inline constexpr PushOptions default_push{};

/// One message of a batch.
struct Push {
    std::string_view key;
    std::string_view data;
    TimePoint due;
    PushOptions options = {};
};

/// The data of an item: one or more fragments, in the order of their pushes. A view.
class Fragments {
   public:
    class Iterator {
       public:
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;
        using reference = std::string_view;
        using pointer = void;

        Iterator() noexcept = default;
        explicit Iterator(const char* at) noexcept : at_(at) {}
        std::string_view operator*() const noexcept { return {at_ + prefix, length()}; }
        Iterator& operator++() noexcept {
            at_ += prefix + length();
            return *this;
        }
        Iterator operator++(int) noexcept {
            const Iterator before = *this;
            ++*this;
            return before;
        }
        bool operator==(const Iterator&) const noexcept = default;

       private:
        [[nodiscard]] std::uint32_t length() const noexcept {
            std::uint32_t length;
            std::memcpy(&length, at_, sizeof length);
            return length;
        }
        const char* at_ = nullptr;
    };

    Fragments() noexcept = default;
    /// From raw(), as it was stored.
    explicit Fragments(std::string_view raw) noexcept : raw_(raw) {}

    [[nodiscard]] Iterator begin() const noexcept { return Iterator(raw_.data()); }
    [[nodiscard]] Iterator end() const noexcept { return Iterator(raw_.data() + raw_.size()); }
    [[nodiscard]] std::string_view front() const noexcept { return *begin(); }
    /// How many there are; O(n).
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(std::distance(begin(), end())); }

    /// Each fragment with its length before it, 4 bytes in the byte order of the machine.
    [[nodiscard]] std::string_view raw() const noexcept { return raw_; }

    static constexpr std::size_t prefix = sizeof(std::uint32_t);

   private:
    std::string_view raw_;
};

/// An item as it lies in the queue: a view, valid until the queue is changed or, in a sink, until that returns.
struct KeyedItem {
    std::string_view key;
    std::string_view type;
    Fragments data;
    TimePoint due;
    TimePoint first_push;
    std::uint64_t sequence;  ///< items with the same due leave in this order
    std::uint32_t pushes;    ///< how many pushes it stands for
    bool sealed;             ///< a cap was reached: the key does not find it
};

/// An item that has left the queue.
struct EvictedItem {
    std::string key;
    std::string type;
    std::vector<std::string> data;
    TimePoint due;
    TimePoint first_push;
    std::uint32_t pushes;

    explicit EvictedItem(const KeyedItem& item)
        : key(item.key),
          type(item.type),
          data(item.data.begin(), item.data.end()),
          due(item.due),
          first_push(item.first_push),
          pushes(item.pushes) {}
};

/// How many items fall due when: see PriorityHashQueue::forecast().
struct Forecast {
    TimePoint start;                  ///< what is due before it is counted in the first bucket
    Duration bucket;                  ///< the width of a bucket
    std::vector<std::size_t> counts;  ///< per bucket
    std::size_t later = 0;            ///< due after the last one
    std::size_t looked_at = 0;        ///< how far the count has come
};

}  // namespace vigil
