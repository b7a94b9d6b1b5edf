#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vigil {

/// Which of a fixed number of places are occupied, in levels: a bit stands for a place, or for 64 bits of the level
/// below. So the next occupied one is found in as many steps as there are levels.
///
/// Invariant: a bit of an upper level is set if any of its 64 below is. All calls O(log64 n); only the constructor
/// throws.
class Occupancy {
   public:
    static constexpr std::size_t none = ~std::size_t{0};

    explicit Occupancy(std::size_t places) {
        do {
            places = (places + 63) / 64;
            levels_.emplace_back(places);
        } while (places > 1);
    }

    void set(std::size_t place) noexcept {
        for (auto& level : levels_) {
            auto& word = level[place / 64];
            const bool known = word != 0;
            word |= bit(place);
            if (known) return;
            place /= 64;
        }
    }
    void reset(std::size_t place) noexcept {
        for (auto& level : levels_) {
            if ((level[place / 64] &= ~bit(place)) != 0) return;
            place /= 64;
        }
    }
    [[nodiscard]] bool test(std::size_t place) const noexcept { return (levels_[0][place / 64] & bit(place)) != 0; }

    /// The first that is occupied, from `place` on; or none.
    [[nodiscard]] std::size_t first_from(std::size_t place) const noexcept {
        for (std::size_t level = 0; level < levels_.size(); ++level) {
            if (place / 64 >= levels_[level].size()) return none;
            const std::uint64_t rest = levels_[level][place / 64] & ~(bit(place) - 1);
            if (rest != 0) return lowest_below(level, place / 64 * 64 + lowest(rest));
            place = place / 64 + 1;
        }
        return none;
    }

   private:
    static std::uint64_t bit(std::size_t place) noexcept { return std::uint64_t{1} << place % 64; }
    static std::size_t lowest(std::uint64_t word) noexcept { return static_cast<std::size_t>(std::countr_zero(word)); }

    [[nodiscard]] std::size_t lowest_below(std::size_t level, std::size_t place) const noexcept {
        while (level > 0) place = place * 64 + lowest(levels_[--level][place]);
        return place;
    }

    std::vector<std::vector<std::uint64_t>> levels_;
};

}  // namespace vigil
