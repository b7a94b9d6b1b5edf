#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>
#include <vigil/core/time.hpp>

using namespace std::chrono_literals;
using vigil::Delay;
using vigil::Duration;
using vigil::saturating_add;
using vigil::TimePoint;

namespace {

using Seconds = std::chrono::duration<double>;
using Microseconds = std::chrono::duration<double, std::micro>;

// Read at run time: a compiler may turn a wrong conversion of a constant NaN into a right one.
const volatile double not_a_number = std::numeric_limits<double>::quiet_NaN();
const volatile double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("Delay keeps a whole number of microseconds as it is") {
    REQUIRE(Delay{0us}.value() == 0us);
    REQUIRE(Delay{1us}.value() == 1us);
    REQUIRE(Delay{500ms}.value() == 500'000us);
    REQUIRE(Delay{24h}.value() == 24h);
    REQUIRE(Delay{Delay::longest}.value() == Delay::longest);
}

TEST_CASE("Delay rounds a part of a microsecond up") {
    REQUIRE(Delay{1ns}.value() == 1us);
    REQUIRE(Delay{999ns}.value() == 1us);
    REQUIRE(Delay{1000ns}.value() == 1us);
    REQUIRE(Delay{1001ns}.value() == 2us);
    REQUIRE(Delay{std::chrono::duration<std::int64_t, std::atto>{1}}.value() == 1us);
}

TEST_CASE("Delay rounds fractional durations up") {
    REQUIRE(Delay{Seconds{0.5}}.value() == 500ms);
    REQUIRE(Delay{Seconds{1.0 / 3}}.value() == 333'334us);
    REQUIRE(Delay{Microseconds{0.001}}.value() == 1us);
    REQUIRE(Delay{Microseconds{1.5}}.value() == 2us);
    REQUIRE(Delay{Seconds{std::numeric_limits<double>::denorm_min()}}.value() == 1us);
    REQUIRE(Delay{std::chrono::duration<float, std::ratio<3600>>{1.5F}}.value() == 90min);
}

TEST_CASE("Delay takes decimal seconds for what they say") {
    REQUIRE(Delay{Seconds{0.1}}.value() == 100ms);
    REQUIRE(Delay{Seconds{0.3}}.value() == 300ms);
    REQUIRE(Delay{Seconds{12.345678}}.value() == 12'345'678us);
}

TEST_CASE("Delay is never early when it is made from float seconds") {
    for (int seconds = 1; seconds < 100'000; ++seconds) {
        const Delay delay{std::chrono::duration<float>{static_cast<float>(seconds)}};
        if (delay.value() < std::chrono::seconds{seconds})
            FAIL(seconds << " s became " << delay.value().count() << " us");
    }
}

TEST_CASE("Delay counts what is negative, and NaN, as zero") {
    REQUIRE(Delay{-1ns}.value() == 0us);
    REQUIRE(Delay{std::chrono::hours::min()}.value() == 0us);
    REQUIRE(Delay{Duration::min()}.value() == 0us);
    REQUIRE(Delay{Seconds{-0.5}}.value() == 0us);
    REQUIRE(Delay{Seconds{-0.0}}.value() == 0us);
    REQUIRE(Delay{Seconds{-infinity}}.value() == 0us);
    REQUIRE(Delay{Seconds{not_a_number}}.value() == 0us);
}

TEST_CASE("Delay clamps what is too long instead of overflowing") {
    REQUIRE(Delay{std::chrono::hours::max()}.value() == Delay::longest);
    REQUIRE(Delay{std::chrono::seconds::max()}.value() == Delay::longest);
    REQUIRE(Delay{Duration::max()}.value() == Delay::longest);
    REQUIRE(Delay{Delay::longest + 1us}.value() == Delay::longest);
    REQUIRE(Delay{Seconds{std::numeric_limits<double>::max()}}.value() == Delay::longest);
    REQUIRE(Delay{Seconds{infinity}}.value() == Delay::longest);
    REQUIRE(Delay{std::chrono::duration<std::uint64_t>::max()}.value() == Delay::longest);
}

TEST_CASE("Delay keeps what is just below the longest") {
    REQUIRE(Delay{Delay::longest - 1us}.value() == Delay::longest - 1us);
    const auto hours = std::chrono::floor<std::chrono::hours>(Delay::longest);
    REQUIRE(Delay{hours}.value() == hours);
    REQUIRE(Delay{hours + 1h}.value() == Delay::longest);
}

TEST_CASE("Delay holds a hundred years, and all that nanoseconds can count") {
    REQUIRE(Delay{std::chrono::years{100}}.value() == std::chrono::years{100});
    REQUIRE(Delay{std::chrono::duration<double, std::chrono::years::period>{100}}.value() == std::chrono::years{100});
    REQUIRE(Delay{std::chrono::nanoseconds::max()}.value() ==
            std::chrono::ceil<Duration>(std::chrono::nanoseconds::max()));
}

TEST_CASE("Delay does not overflow for a period that microseconds do not divide") {
    using PowerManagementTicks = std::chrono::duration<std::int64_t, std::ratio<1, 3'579'545>>;
    REQUIRE(Delay{PowerManagementTicks{1}}.value() == 1us);
    REQUIRE(Delay{PowerManagementTicks{100 * 86'400 * std::int64_t{3'579'545}}}.value() == 100 * 24h);
    REQUIRE(Delay{PowerManagementTicks{200 * 86'400 * std::int64_t{3'579'545}}}.value() == 200 * 24h);
}

TEST_CASE("Delay is made at compile time, from any duration, without being asked") {
    STATIC_REQUIRE(Delay{1500ns}.value() == 2us);
    STATIC_REQUIRE(Delay{std::chrono::hours::max()}.value() == Delay::longest);
    STATIC_REQUIRE(Delay{Seconds{0.25}}.value() == 250ms);
    STATIC_REQUIRE(std::is_convertible_v<std::chrono::nanoseconds, Delay>);
    STATIC_REQUIRE(std::is_convertible_v<Seconds, Delay>);
    STATIC_REQUIRE_FALSE(std::is_convertible_v<int, Delay>);
}

TEST_CASE("saturating_add adds what fits") {
    STATIC_REQUIRE(saturating_add(TimePoint{5us}, 7us) == TimePoint{12us});
    STATIC_REQUIRE(saturating_add(TimePoint::max(), 0us) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(TimePoint::max() - 7us, 7us) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(TimePoint::max() - 7us, 6us) == TimePoint::max() - 1us);
    STATIC_REQUIRE(saturating_add(TimePoint{}, Duration::max()) == TimePoint::max());
}

TEST_CASE("saturating_add stops at the end of time") {
    STATIC_REQUIRE(saturating_add(TimePoint::max(), 1us) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(TimePoint::max(), Duration::max()) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(TimePoint{1us}, Duration::max()) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(TimePoint::max() - 7us, 8us) == TimePoint::max());
    STATIC_REQUIRE(saturating_add(saturating_add(TimePoint{2us}, Delay::longest), Delay::longest) == TimePoint::max());
}

TEST_CASE("saturating_add starts from before the beginning of time too") {
    STATIC_REQUIRE(saturating_add(TimePoint{-5us}, 3us) == TimePoint{-2us});
    STATIC_REQUIRE(saturating_add(TimePoint{-5us}, 7us) == TimePoint{2us});
    STATIC_REQUIRE(saturating_add(TimePoint{-1us}, Duration::max()) == TimePoint::max() - 1us);
    STATIC_REQUIRE(saturating_add(TimePoint::min(), Duration::max()) == TimePoint{-1us});
}
