#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vigil/queue/keyed_item.hpp>

namespace vigil {

/// The bytes of an item: key, type and fragments, one after the other. Those of a small item lie inside, next to what
/// else belongs to it; others in a block of their own, which grows in steps of half its size.
///
/// Invariants: key, type and fragments fill at most capacity() bytes; the fragments are as many as were counted. What
/// throws (std::bad_alloc, std::length_error) leaves it as it was. Arguments may be views of these very bytes. clear()
/// must be called before it is destroyed.
class KeyedData {
   public:
    static constexpr std::size_t longest = std::numeric_limits<std::uint32_t>::max();
    static constexpr std::size_t longest_type = std::numeric_limits<std::uint16_t>::max();

    [[nodiscard]] std::string_view key() const noexcept { return {bytes(), key_size_}; }
    [[nodiscard]] std::string_view type() const noexcept { return {bytes() + key_size_, type_size_}; }
    [[nodiscard]] Fragments fragments() const noexcept {
        return Fragments({bytes() + key_size_ + type_size_, fragments_size_});
    }
    [[nodiscard]] bool has_key(std::string_view key) const noexcept {
        if (key.size() != key_size_) return false;
        if (key.empty()) return true;
        const char* own = bytes();
        if (key.size() < 8 || key.size() > 16) return std::memcmp(own, key.data(), key.size()) == 0;
        // Most keys are like this, and two loads are a third of the call.
        const auto eight = [](const char* at) {
            std::uint64_t word;
            std::memcpy(&word, at, sizeof word);
            return word;
        };
        const std::size_t last = key.size() - 8;
        return eight(own) == eight(key.data()) && eight(own + last) == eight(key.data() + last);
    }
    /// The fragments without their lengths.
    [[nodiscard]] std::size_t data_size() const noexcept { return fragments_size_ - fragments_ * Fragments::prefix; }
    [[nodiscard]] std::size_t outside_bytes() const noexcept { return outside_ ? block().capacity : 0; }

    void assign(std::string_view key, std::string_view type, std::string_view fragment) {
        check_sizes(key, type, fragment, Fragments::prefix);
        make_room(key.size() + type.size() + Fragments::prefix + fragment.size());
        put_key(key);
        put_type(type);
        fragments_size_ = fragments_ = 0;
        put_fragment(fragment);
    }
    void assign(std::string_view key, std::string_view type, Fragments fragments) {
        check_sizes(key, type, fragments.raw(), 0);
        make_room(key.size() + type.size() + fragments.raw().size());
        put_key(key);
        put_type(type);
        fragments_size_ = static_cast<std::uint32_t>(fragments.raw().size());
        fragments_ = static_cast<std::uint32_t>(fragments.size());
        copy(bytes() + key_size_ + type_size_, fragments.raw());
    }

    void replace(std::string_view type, std::string_view fragment) {
        if (try_replace(type, fragment)) return;
        if (lies_in(bytes(), capacity(), type) || lies_in(bytes(), capacity(), fragment)) {
            return replace(std::string(type), std::string(fragment));
        }
        check_sizes(key(), type, fragment, Fragments::prefix);
        make_room(key_size_ + type.size() + Fragments::prefix + fragment.size());
        put_type(type);
        fragments_size_ = fragments_ = 0;
        put_fragment(fragment);
    }
    /// The same, if it takes no more than copying: nothing to allocate, nothing that overlaps.
    bool try_replace(std::string_view type, std::string_view fragment) noexcept {
        const std::size_t type_end = key_size_ + type.size();
        const std::size_t end = type_end + Fragments::prefix + fragment.size();
        if (outside_ || end > inside_bytes || lies_in(inside_, inside_bytes, fragment)) return false;
        if (!type.empty()) {
            if (lies_in(inside_, inside_bytes, type)) return false;
            copy_short(inside_ + key_size_, type);
        }
        type_size_ = static_cast<std::uint16_t>(type.size());
        const auto length = static_cast<std::uint32_t>(fragment.size());
        std::memcpy(inside_ + type_end, &length, sizeof length);
        copy_short(inside_ + type_end + Fragments::prefix, fragment);
        fragments_size_ = static_cast<std::uint32_t>(Fragments::prefix + fragment.size());
        fragments_ = 1;
        return true;
    }

    void append(std::string_view type, std::string_view fragment) {
        if (lies_in(bytes(), capacity(), type) || lies_in(bytes(), capacity(), fragment)) {
            return append(std::string(type), std::string(fragment));
        }
        check_sizes(key(), type, fragment, fragments_size_ + Fragments::prefix);
        make_room(key_size_ + std::max<std::size_t>(type.size(), type_size_) + fragments_size_ + Fragments::prefix +
                  fragment.size());
        if (type.size() != type_size_) {
            const char* fragments = bytes() + key_size_ + type_size_;
            std::memmove(bytes() + key_size_ + type.size(), fragments, fragments_size_);
        }
        put_type(type);
        put_fragment(fragment);
    }

    void clear() noexcept {
        if (outside_) ::operator delete(block().bytes);
        outside_ = false;
        key_size_ = fragments_size_ = fragments_ = type_size_ = 0;
    }

    [[nodiscard]] bool check() const noexcept {
        if (std::size_t{key_size_} + type_size_ + fragments_size_ > capacity()) return false;
        std::size_t counted = 0, size = 0;
        for (; size < fragments_size_ && counted < fragments_; ++counted) {
            const std::string_view rest = fragments().raw().substr(size);
            if (rest.size() < Fragments::prefix) return false;
            size += Fragments::prefix + Fragments(rest).front().size();
        }
        return counted == fragments_ && size == fragments_size_;
    }

   private:
    static constexpr std::size_t inside_bytes = 65;
    struct Block {
        char* bytes;
        std::size_t capacity;
    };

    [[nodiscard]] Block block() const noexcept {
        Block block;
        std::memcpy(&block, inside_, sizeof block);
        return block;
    }
    [[nodiscard]] const char* bytes() const noexcept { return outside_ ? block().bytes : inside_; }
    [[nodiscard]] char* bytes() noexcept { return outside_ ? block().bytes : inside_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return outside_ ? block().capacity : inside_bytes; }

    static bool lies_in(const char* bytes, std::size_t count, std::string_view view) noexcept {
        return reinterpret_cast<std::uintptr_t>(view.data()) - reinterpret_cast<std::uintptr_t>(bytes) < count;
    }

    static void check_sizes(std::string_view key, std::string_view type, std::string_view data, std::size_t more) {
        if (type.size() > longest_type) throw std::length_error("a type has more than 65535 bytes");
        if (key.size() > longest || data.size() + more > longest) throw std::length_error("an item has 4 GiB or more");
    }

    void make_room(std::size_t needed) {
        if (needed <= capacity()) return;
        const std::size_t larger = std::max(needed, capacity() + capacity() / 2);
        const Block grown{static_cast<char*>(::operator new(larger)), larger};
        copy(grown.bytes, {bytes(), std::size_t{key_size_} + type_size_ + fragments_size_});
        if (outside_) ::operator delete(block().bytes);
        std::memcpy(inside_, &grown, sizeof grown);
        outside_ = true;
    }

    static void copy(char* to, std::string_view from) noexcept {
        if (!from.empty()) std::memcpy(to, from.data(), from.size());
    }
    /// Up to inside_bytes: in two or four parts that overlap, since a call would cost more than that.
    static void copy_short(char* to, std::string_view from) noexcept {
        const std::size_t size = from.size();
        const auto copy_part = [&]<std::size_t part>(std::size_t at) { std::memcpy(to + at, from.data() + at, part); };
        const auto copy_ends = [&]<std::size_t part>() {
            copy_part.template operator()<part>(0);
            copy_part.template operator()<part>(size - part);
        };
        static_assert(inside_bytes <= 4 * 16 + Fragments::prefix);
        if (size > 32) {
            copy_part.template operator()<16>(16);
            copy_part.template operator()<16>(size - 32);
            copy_ends.template operator()<16>();
        } else if (size >= 16) {
            copy_ends.template operator()<16>();
        } else if (size >= 8) {
            copy_ends.template operator()<8>();
        } else if (size >= 4) {
            copy_ends.template operator()<4>();
        } else {
            for (std::size_t at = 0; at < size; ++at) to[at] = from[at];
        }
    }
    void put_key(std::string_view key) noexcept {
        key_size_ = static_cast<std::uint32_t>(key.size());
        copy(bytes(), key);
    }
    void put_type(std::string_view type) noexcept {
        type_size_ = static_cast<std::uint16_t>(type.size());
        copy(bytes() + key_size_, type);
    }
    void put_fragment(std::string_view fragment) noexcept {
        char* at = bytes() + key_size_ + type_size_ + fragments_size_;
        const auto length = static_cast<std::uint32_t>(fragment.size());
        std::memcpy(at, &length, sizeof length);
        copy(at + Fragments::prefix, fragment);
        fragments_size_ += static_cast<std::uint32_t>(Fragments::prefix + fragment.size());
        ++fragments_;
    }

    std::uint32_t key_size_ = 0;
    std::uint32_t fragments_size_ = 0;
    std::uint32_t fragments_ = 0;
    std::uint16_t type_size_ = 0;
    bool outside_ = false;
    char inside_[inside_bytes];
};

}  // namespace vigil
