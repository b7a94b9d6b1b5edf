#include <vigil/core/hash.hpp>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <random>

namespace vigil {

std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed) noexcept {
    return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint64_t random_seed() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

}  // namespace vigil
