#pragma once

namespace vigil {

/// Starts to bring a cache line here; it will be read or written soon.
inline void prefetch(const void* address) noexcept {
    __builtin_prefetch(address, 1);
    // g++ 12 takes a function that does nothing else for one without effect, and drops the calls of it.
    asm volatile("" : : "r"(address));
}

}  // namespace vigil
