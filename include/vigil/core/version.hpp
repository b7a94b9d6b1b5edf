#pragma once

#include <string_view>

namespace vigil {

/// The library's version, as "major.minor.patch".
[[nodiscard]] std::string_view version() noexcept;

}  // namespace vigil
