#pragma once

#include <cstdint>
#include <string_view>

namespace vigil {

/// A hash whose collisions nobody can foresee who does not know the seed: keys come from the network.
[[nodiscard]] std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) noexcept;

/// A different one at each call.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace vigil
