#pragma once

#include <vigil/core/time.hpp>

namespace vigil {

/// What a queue of values hands to a sink. A sink that takes it may move the value out; one that refuses must not.
template <class T>
struct DueValue {
    TimePoint due;
    T& value;
};

}  // namespace vigil
