#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <set>
#include <utility>
#include <vector>
#include <vigil/queue/parking_ring.hpp>

#include "failing_allocator.hpp"
#include "random.hpp"

using namespace std::chrono_literals;
using vigil::Duration;
using vigil::MillisecondRing;
using vigil::TimePoint;
using vigil::testing::AllocationsFailAfter;
using vigil::testing::Random;

namespace {

using Slot = MillisecondRing::Slot;
using Place = MillisecondRing::Place;
using BucketNumber = MillisecondRing::BucketNumber;
constexpr BucketNumber bucket_count = MillisecondRing::bucket_count;
constexpr std::uint32_t chunk_size = MillisecondRing::chunk_size;
constexpr auto bucket_width = MillisecondRing::start_of(1) - MillisecondRing::start_of(0);

void expect(bool right, const char* claim) {
    if (!right) FAIL(claim);
}

/// A ring beside a sorted set that holds the same.
class CheckedRing {
   public:
    explicit CheckedRing(BucketNumber first) { ring.begin_at(first); }

    [[nodiscard]] std::size_t size() const { return live_.size(); }
    [[nodiscard]] Slot random_slot(Random& random) const { return live_[random.below(size())]; }

    void add(TimePoint due) {
        if (free_.empty()) {
            free_.push_back(static_cast<Slot>(items_.size()));
            items_.emplace_back();
        }
        const Slot slot = free_.back();
        free_.pop_back();
        items_[slot] = {due, ring.add(slot, due), live_.size()};
        live_.push_back(slot);
        model_.emplace(due, slot);
    }
    void remove(Slot slot) {
        const auto item = items_[slot];
        forget(slot);
        ring.remove(item.place, item.due, [&](Slot moved, Place place) {
            expect(moved != slot && items_[moved].place != place, "only another slot moves");
            items_[moved].place = place;
        });
    }
    void take_from(BucketNumber number) {
        const auto in_bucket = model_.lower_bound({MillisecondRing::start_of(number), 0});
        const bool some = in_bucket != model_.end() && MillisecondRing::bucket_of(in_bucket->first) == number;
        const auto batch = ring.batch_of(number);
        ring.take_from(number);
        expect(some == (batch.count > 0) && batch.count <= chunk_size, "a batch is taken if there is one");
        for (const Slot slot : batch) {
            expect(MillisecondRing::bucket_of(items_[slot].due) == number, "a batch is of its bucket");
            forget(slot);
        }
    }
    void compare() const {
        expect(ring.size() == size() && ring.empty() == live_.empty(), "the size");
        expect(ring.earliest().has_value() == !live_.empty(), "there is an earliest if there is any");
        if (live_.empty()) return;
        const TimePoint earliest = model_.begin()->first;
        expect(ring.first_occupied() == MillisecondRing::bucket_of(earliest), "the first occupied bucket");
        expect(*ring.earliest() <= earliest, "earliest is not later than any due");
        expect(MillisecondRing::bucket_of(*ring.earliest()) == ring.first_occupied(), "earliest is of that bucket");
    }
    [[nodiscard]] bool check() const {
        return ring.check([&](Slot slot, MillisecondRing::Place) { return items_[slot].due; });
    }

    MillisecondRing ring;

   private:
    struct Item {
        TimePoint due;
        Place place;
        std::size_t index;  // in live_
    };

    void forget(Slot slot) {
        expect(model_.erase({items_[slot].due, slot}) == 1, "each slot is there once");
        items_[live_.back()].index = items_[slot].index;
        live_[items_[slot].index] = live_.back();
        live_.pop_back();
        free_.push_back(slot);
    }

    std::vector<Item> items_;
    std::vector<Slot> live_, free_;
    std::set<std::pair<TimePoint, Slot>> model_;
};

TimePoint in_bucket(BucketNumber number, Random& random) {
    return MillisecondRing::start_of(number) + Duration{random.below(bucket_width.count())};
}

void random_step(CheckedRing& checked, Random& random, std::uint64_t around, std::uint64_t spread) {
    auto& ring = checked.ring;
    if (checked.size() == 0 || random.below(2 * around) >= checked.size()) {
        if (ring.empty()) ring.begin_at(ring.first() + static_cast<BucketNumber>(random.below(40'000)) - 20'000);
        return checked.add(in_bucket(ring.first() + static_cast<BucketNumber>(random.below(spread)), random));
    }
    switch (random.below(4)) {
        case 0:
            return checked.remove(checked.random_slot(random));
        case 1:
            return checked.take_from(ring.first_occupied());
        case 2:
            return checked.take_from(ring.first() + static_cast<BucketNumber>(random.below(spread)));
        default:
            const auto free = static_cast<std::uint64_t>(ring.first_occupied() - ring.first());
            return ring.begin_at(ring.first() + static_cast<BucketNumber>(random.below(free + 1)));
    }
}

}  // namespace

TEST_CASE("ParkingRing gives back what is added, whatever is done to it in between") {
    Random random;
    CAPTURE(random.seed());
    for (const std::uint64_t spread : {1, 5, 300, 16 * 1024}) {
        for (const std::uint64_t around : {2, 50, 2000}) {
            CAPTURE(spread, around);
            CheckedRing checked(-20'000);
            for (int step = 0; step < 30'000; ++step) {
                random_step(checked, random, around, spread);
                checked.compare();
                if (step % 500 == 0) expect(checked.check(), "check()");
            }
            while (!checked.ring.empty()) checked.take_from(checked.ring.first_occupied());
            REQUIRE(checked.size() == 0);
            REQUIRE(checked.check());
        }
    }
}

TEST_CASE("A bucket is for what is due in its millisecond, before the beginning of time too") {
    STATIC_REQUIRE(bucket_width == 1024us);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{0us}) == 0);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{1023us}) == 0);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{1024us}) == 1);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{-1us}) == -1);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{-1024us}) == -1);
    STATIC_REQUIRE(MillisecondRing::bucket_of(TimePoint{-1025us}) == -2);
    STATIC_REQUIRE(MillisecondRing::start_of(MillisecondRing::bucket_of(TimePoint::min())) == TimePoint::min());
    STATIC_REQUIRE(MillisecondRing::start_of(MillisecondRing::bucket_of(TimePoint::max())) ==
                   TimePoint::max() - 1023us);
}

TEST_CASE("ParkingRing covers as many buckets as it has, from its first on") {
    const auto last_bucket = MillisecondRing::bucket_of(TimePoint::max());
    for (const BucketNumber first : {BucketNumber{-100'000}, BucketNumber{-1}, BucketNumber{0}, last_bucket - 20'000}) {
        MillisecondRing ring;
        ring.begin_at(first);
        REQUIRE(ring.first() == first);
        REQUIRE(ring.covers(MillisecondRing::start_of(first)));
        REQUIRE_FALSE(ring.covers(MillisecondRing::start_of(first) - 1us));
        REQUIRE(ring.covers(MillisecondRing::start_of(first + bucket_count) - 1us));
        REQUIRE_FALSE(ring.covers(MillisecondRing::start_of(first + bucket_count)));
        REQUIRE_FALSE(ring.covers(TimePoint::max()));
        REQUIRE_FALSE(ring.covers(TimePoint::min()));
    }
}

TEST_CASE("ParkingRing at the end of time covers the rest of it, and nothing after its last bucket") {
    MillisecondRing ring;
    ring.begin_at(MillisecondRing::bucket_of(TimePoint::max()));
    REQUIRE(ring.covers(TimePoint::max()));
    const auto place = ring.add(7, TimePoint::max());
    REQUIRE(ring.earliest() == TimePoint::max());
    ring.remove(place, TimePoint::max(), [](Slot, Place) {});
    ring.begin_at(ring.first() + 1);
    REQUIRE_FALSE(ring.covers(TimePoint::max()));
}

TEST_CASE("ParkingRing finds the only occupied bucket from every position, at every kind of distance") {
    MillisecondRing ring;
    bool found = true;
    for (BucketNumber first = -bucket_count - 3; first < bucket_count + 3; ++first) {
        ring.begin_at(first);
        for (const BucketNumber distance : {0, 1, 63, 64, 65, 4095, 4096, 4097, 12'289, 16'320, 16'383}) {
            const TimePoint due = MillisecondRing::start_of(first + distance) + 5us;
            const auto place = ring.add(7, due);
            found = found && ring.first_occupied() == first + distance && ring.earliest() == due;
            ring.remove(place, due, [](Slot, Place) {});
        }
    }
    REQUIRE(found);
    REQUIRE(ring.empty());
}

TEST_CASE("ParkingRing finds the nearer of two occupied buckets") {
    Random random;
    CAPTURE(random.seed());
    MillisecondRing ring;
    for (int round = 0; round < 200'000; ++round) {
        const auto first = static_cast<BucketNumber>(random.below(100'000)) - 50'000;
        ring.begin_at(first);
        const auto one = first + static_cast<BucketNumber>(random.below(bucket_count));
        const auto other = first + static_cast<BucketNumber>(random.below(bucket_count));
        ring.add(1, MillisecondRing::start_of(one));
        ring.add(2, MillisecondRing::start_of(other));
        expect(ring.first_occupied() == std::min(one, other), "the nearer is first");
        while (!ring.empty()) ring.take_from(ring.first_occupied());
    }
}

TEST_CASE("ParkingRing keeps all that is parked when it moves on") {
    CheckedRing checked(-3 * bucket_count);
    for (BucketNumber moved = 0; moved < 6 * bucket_count; ++moved) {
        auto& ring = checked.ring;
        checked.add(MillisecondRing::start_of(ring.first() + bucket_count - 1) + 1us);
        if (moved >= bucket_count - 1) checked.take_from(ring.first());
        checked.compare();
        ring.begin_at(ring.first() + 1);
    }
    REQUIRE(checked.size() == bucket_count - 1);
    REQUIRE(checked.check());
}

TEST_CASE("ParkingRing knows the earliest due exactly until that is removed, and then says nothing later") {
    CheckedRing checked(0);
    for (const auto due : {5us, 9us, 3us, 7us}) checked.add(TimePoint{due});
    REQUIRE(checked.ring.earliest() == TimePoint{3us});
    checked.remove(3);
    REQUIRE(checked.ring.earliest() == TimePoint{3us});
    checked.remove(2);
    REQUIRE(*checked.ring.earliest() <= TimePoint{5us});
    checked.remove(0);
    checked.remove(1);
    REQUIRE_FALSE(checked.ring.earliest());
    checked.add(TimePoint{8us});
    REQUIRE(checked.ring.earliest() == TimePoint{8us});
}

TEST_CASE("ParkingRing gives a bucket back in batches, each slot once") {
    for (Slot count = 0; count <= 4 * chunk_size; ++count) {
        MillisecondRing ring;
        ring.add(1000, TimePoint{2000us});
        for (Slot slot = 0; slot < count; ++slot) ring.add(slot, TimePoint{500us});
        std::set<Slot> taken;
        for (std::uint32_t batches = 0; batches < (count + chunk_size - 1) / chunk_size; ++batches) {
            const auto batch = ring.batch_of(0);
            ring.take_from(0);
            REQUIRE(batch.count > 0);
            taken.insert(batch.begin(), batch.end());
        }
        REQUIRE(taken.size() == count);
        REQUIRE((count == 0 || *taken.rbegin() == count - 1));
        REQUIRE(ring.batch_of(0).count == 0);
        REQUIRE(ring.size() == 1);
    }
}

TEST_CASE("ParkingRing uses its memory again") {
    CheckedRing checked(0);
    std::size_t used = 0;
    for (BucketNumber bucket = 0; bucket < 1000; ++bucket) {
        for (int count = 0; count < 500; ++count) checked.add(MillisecondRing::start_of(bucket) + Duration{count});
        if (bucket == 0) used = checked.ring.bytes();
        while (!checked.ring.empty()) checked.take_from(bucket);
    }
    REQUIRE(checked.ring.bytes() == used);
}

TEST_CASE("ParkingRing is as it was when memory runs out") {
    MillisecondRing ring;
    std::vector<TimePoint> dues;
    std::size_t failures = 0;
    const auto adds = [&](std::size_t allowed) {
        try {
            const AllocationsFailAfter limited{allowed};
            ring.add(static_cast<Slot>(dues.size() - 1), dues.back());
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    };
    for (std::size_t count = 0; count < 20'000; ++count) {
        dues.push_back(TimePoint{Duration{count * 389 % 5000}});
        const auto earliest = ring.earliest();
        for (std::size_t allowed = 0; !adds(allowed); ++allowed, ++failures) {
            expect(ring.size() == count && ring.earliest() == earliest, "nothing changed");
            expect(ring.check([&](Slot slot, MillisecondRing::Place) { return dues[slot]; }), "check()");
        }
    }
    REQUIRE(failures >= 5);
    REQUIRE(ring.size() == 20'000);
    REQUIRE(ring.check([&](Slot slot, MillisecondRing::Place) { return dues[slot]; }));
}
