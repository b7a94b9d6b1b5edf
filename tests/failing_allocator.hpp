#pragma once

#include <cstddef>
#include <limits>

namespace vigil::testing {

/// While one lives, the allocation after `allowed` others fails with std::bad_alloc, and so does every later one.
class AllocationsFailAfter {
   public:
    explicit AllocationsFailAfter(std::size_t allowed);
    ~AllocationsFailAfter();
    AllocationsFailAfter(const AllocationsFailAfter&) = delete;
    AllocationsFailAfter& operator=(const AllocationsFailAfter&) = delete;
};

}  // namespace vigil::testing
