#include <vigil/core/version.hpp>

namespace vigil {

std::string_view version() noexcept {
    return VIGIL_VERSION;  // given by meson.build
}

}  // namespace vigil
