#pragma once

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace vigil {

/// The clock that orders everything in memory: monotonic microseconds. It has no now() on purpose: pure code is
/// given the time, and Loop::now() is the one place that reads it.
struct Monotonic {
    using rep = std::int64_t;
    using period = std::micro;
    using duration = std::chrono::duration<rep, period>;
};

using Duration = Monotonic::duration;
using TimePoint = std::chrono::time_point<Monotonic, Duration>;

/// `at + by`, clamped to the end of time. `by` is not negative.
[[nodiscard]] constexpr TimePoint saturating_add(TimePoint at, Duration by) noexcept {
    if (at > TimePoint{} && by > TimePoint::max() - at) return TimePoint::max();
    return at + by;
}

/// How long to wait: made from any chrono duration, whole or fractional. Rounded up to the microsecond (late, never
/// early) and clamped to [0, longest] instead of overflowing; NaN counts as 0.
class Delay {
   public:
    static constexpr Duration longest = Duration::max() / 2;  // 146 000 years

    template <class Rep, class Period>
    constexpr Delay(std::chrono::duration<Rep, Period> delay) noexcept : value_(clamp(delay)) {}

    [[nodiscard]] constexpr Duration value() const noexcept { return value_; }

   private:
    template <class Rep, class Period>
    static constexpr Duration clamp(std::chrono::duration<Rep, Period> delay) noexcept {
        if (!(delay.count() > Rep{0})) return Duration::zero();
        using Wider = std::common_type_t<Rep, std::conditional_t<std::is_integral_v<Rep>, long double, double>>;
        const auto microseconds = std::chrono::duration<Wider, std::micro>(delay).count();
        if (microseconds >= static_cast<Wider>(longest.count())) return longest;
        using Ratio = std::ratio_divide<Period, std::micro>;
        if constexpr (std::is_integral_v<Rep> && (Ratio::num == 1 || Ratio::den == 1)) {
            return std::chrono::ceil<Duration>(delay);
        } else {
            const auto whole = static_cast<std::int64_t>(microseconds);
            return Duration{whole + (static_cast<Wider>(whole) < microseconds)};
        }
    }

    Duration value_;
};

}  // namespace vigil
