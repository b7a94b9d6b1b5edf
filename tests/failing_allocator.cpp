#include "failing_allocator.hpp"

#include <cstdlib>
#include <new>

namespace vigil::testing {

namespace {
constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
thread_local std::size_t allowed_allocations = unlimited;

void* allocate(std::size_t bytes, std::size_t alignment) {
    if (allowed_allocations != unlimited) {
        if (allowed_allocations == 0) throw std::bad_alloc();
        --allowed_allocations;
    }
    const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
}  // namespace

AllocationsFailAfter::AllocationsFailAfter(std::size_t allowed) { allowed_allocations = allowed; }
AllocationsFailAfter::~AllocationsFailAfter() { allowed_allocations = unlimited; }

}  // namespace vigil::testing

// All forms: what one of ours allocates must not meet a foreign delete, nor the reverse.
using vigil::testing::allocate;
constexpr std::size_t natural = alignof(std::max_align_t);

void* operator new(std::size_t bytes) { return allocate(bytes, natural); }
void* operator new[](std::size_t bytes) { return allocate(bytes, natural); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    try {
        return allocate(bytes, natural);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept { return operator new(bytes, nothrow); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
