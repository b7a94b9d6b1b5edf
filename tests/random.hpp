#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace vigil::testing {

/// Random numbers for a test, new ones each run. A failing test prints the seed; VIGIL_SEED repeats it.
class Random {
   public:
    /// Below `end`.
    std::uint64_t below(std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(engine_); }
    bool one_in(std::uint64_t count) { return below(count) == 0; }
    [[nodiscard]] std::uint64_t seed() const { return seed_; }

   private:
    static std::uint64_t pick_seed() {
        const char* given = std::getenv("VIGIL_SEED");
        return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    }

    std::uint64_t seed_ = pick_seed();
    std::mt19937_64 engine_{seed_};
};

}  // namespace vigil::testing
