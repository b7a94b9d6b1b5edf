#include <catch2/catch.hpp>
#include <cstddef>
#include <set>
#include <vigil/queue/occupancy.hpp>

#include "random.hpp"

using vigil::Occupancy;
using vigil::testing::Random;

namespace {

constexpr std::size_t sizes[] = {1, 2, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 4160, 300'000};

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// An Occupancy beside a sorted set of the same places.
class CheckedOccupancy {
   public:
    explicit CheckedOccupancy(std::size_t places) : places_(places), occupancy_(places) {}

    void set(std::size_t place) {
        occupancy_.set(place);
        model_.insert(place);
        compare_around(place);
    }
    void reset(std::size_t place) {
        occupancy_.reset(place);
        model_.erase(place);
        compare_around(place);
    }

    void compare_from(std::size_t place) const {
        const auto first = model_.lower_bound(place);
        const std::size_t expected = first == model_.end() ? Occupancy::none : *first;
        expect(occupancy_.first_from(place) == expected, "the first occupied place is found");
    }
    void compare_around(std::size_t place) const {
        expect(occupancy_.test(place) == model_.contains(place), "a place is occupied, or not");
        compare_from(0);
        compare_from(place);
        if (place > 0) compare_from(place - 1);
        if (place + 1 < places_) compare_from(place + 1);
        compare_from(places_ - 1);
    }
    /// Goes from one to the next.
    void compare_all() const {
        auto expected = model_.begin();
        for (std::size_t place = occupancy_.first_from(0); place != Occupancy::none;
             place = place + 1 < places_ ? occupancy_.first_from(place + 1) : Occupancy::none) {
            expect(expected != model_.end() && place == *expected++, "all are found, in order");
        }
        expect(expected == model_.end(), "none is left out");
    }

    [[nodiscard]] std::size_t random_occupied(Random& random) const {
        const auto found = model_.lower_bound(random.below(places_));
        return found == model_.end() ? *model_.begin() : *found;
    }
    [[nodiscard]] std::size_t count() const { return model_.size(); }

   private:
    std::size_t places_;
    Occupancy occupancy_;
    std::set<std::size_t> model_;
};

}  // namespace

TEST_CASE("Occupancy finds the first occupied place from any place on, of any number of places") {
    Random random;
    CAPTURE(random.seed());
    for (const std::size_t places : sizes) {
        CAPTURE(places);
        CheckedOccupancy checked(places);
        for (int round = 0; round < 20; ++round) {
            const std::size_t around = 1 + random.below(random.one_in(2) ? 5 : 1000);
            for (int step = 0; step < 1000; ++step) {
                if (checked.count() > 0 && random.below(2 * around) < checked.count()) {
                    checked.reset(checked.random_occupied(random));
                } else {
                    checked.set(random.below(places));
                }
                checked.compare_from(random.below(places));
            }
            checked.compare_all();
        }
    }
}

TEST_CASE("Occupancy finds a lone place from all before it and from none after it") {
    Random random;
    CAPTURE(random.seed());
    for (const std::size_t places : sizes) {
        CAPTURE(places);
        std::set<std::size_t> lone{0, places - 1};
        for (int count = 0; count < 50; ++count) lone.insert(random.below(places));
        for (const std::size_t edge : {63, 64, 65, 4095, 4096, 4097, 262'143, 262'144}) {
            if (edge < places) lone.insert(edge);
        }
        Occupancy occupancy(places);
        for (const std::size_t place : lone) {
            expect(occupancy.first_from(0) == Occupancy::none, "at first there is none");
            occupancy.set(place);
            for (std::size_t from = 0; from < places; from += 1 + places / 1000) {
                const std::size_t expected = from <= place ? place : Occupancy::none;
                expect(occupancy.first_from(from) == expected, "from everywhere");
            }
            expect(occupancy.first_from(place) == place, "from its own place");
            occupancy.reset(place);
        }
    }
}

TEST_CASE("Occupancy with all places occupied finds each of them, and none after the last is gone") {
    for (const std::size_t places : sizes) {
        CAPTURE(places);
        CheckedOccupancy checked(places);
        for (std::size_t place = 0; place < places; ++place) checked.set(place);
        checked.compare_all();
        for (std::size_t place = places; place-- > 0;) checked.reset(place);
        checked.compare_all();
    }
}

TEST_CASE("A place that is occupied twice is free when it is freed once, and may be freed again") {
    CheckedOccupancy checked(5000);
    for (int round = 0; round < 2; ++round) {
        for (const std::size_t place : {4999, 64, 0}) {
            checked.set(place);
            checked.set(place);
        }
        for (const std::size_t place : {64, 65, 4999, 0}) {
            checked.reset(place);
            checked.reset(place);
        }
        checked.compare_all();
        REQUIRE(checked.count() == 0);
    }
}
