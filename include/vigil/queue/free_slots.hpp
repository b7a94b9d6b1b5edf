#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vigil {

/// A stack of the free slots of an owner, linked through those slots. In stripes: what will come off the stack next but
/// seven is known beforehand and can be fetched, while in one linked list each slot must be fetched to know the next.
///
/// Invariant: the stripes hold size() slots, the lengths of any two differ by at most one. All calls O(1), none throws.
class FreeSlots {
   public:
    using Slot = std::uint32_t;
    static constexpr Slot none = ~Slot{0};

    FreeSlots() noexcept { heads_.fill(none); }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// `link` is kept by the slot until it is popped.
    void push(Slot slot, Slot& link) noexcept {
        Slot& head = heads_[size_++ % stripes];
        link = head;
        head = slot;
    }

    struct Popped {
        Slot slot;
        Slot coming;  // will be popped soon; or none
    };
    /// `link_of(slot)` gives the link that was stored at push(). There must be one.
    template <class LinkOf>
    Popped pop(LinkOf&& link_of) noexcept {
        Slot& head = heads_[--size_ % stripes];
        const Slot slot = head;
        head = link_of(slot);
        return {slot, head};
    }

    /// `is_free(slot)` is called for each; false ends it.
    template <class LinkOf, class IsFree>
    [[nodiscard]] bool check(LinkOf&& link_of, IsFree&& is_free) const {
        for (std::size_t stripe = 0; stripe < stripes; ++stripe) {
            std::size_t left = (size_ + stripes - 1 - stripe) / stripes;
            Slot slot = heads_[stripe];
            for (; left > 0 && slot != none && is_free(slot); --left) slot = link_of(slot);
            if (left > 0 || slot != none) return false;
        }
        return true;
    }

   private:
    static constexpr std::size_t stripes = 8;

    std::array<Slot, stripes> heads_;
    std::size_t size_ = 0;
};

}  // namespace vigil
