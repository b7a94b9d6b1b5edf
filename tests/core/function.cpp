#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <vigil/core/function.hpp>

#include "failing_allocator.hpp"

using vigil::Function;
using vigil::testing::AllocationsFailAfter;

namespace {

/// Counts how many of its kind are alive: the moved-from ones too.
template <std::size_t Bytes>
struct Counted {
    int* alive;
    std::array<std::byte, Bytes - sizeof(int*)> rest{};

    explicit Counted(int& alive) : alive(&alive) { ++alive; }
    Counted(Counted&& other) noexcept : alive(other.alive) { ++*alive; }
    ~Counted() { --*alive; }
    int operator()() const { return *alive; }
};
using Small = Counted<16>;
using Large = Counted<64>;

/// Calls an action when it ends; a moved-from one does nothing.
class AtEnd {
   public:
    explicit AtEnd(std::function<void()> action)
        : action_(std::make_unique<std::function<void()>>(std::move(action))) {}
    AtEnd(AtEnd&&) noexcept = default;
    ~AtEnd() {
        if (action_) (*action_)();
    }

   private:
    std::unique_ptr<std::function<void()>> action_;
};

int twice(int number) { return 2 * number; }

struct Person {
    std::string name;
    [[nodiscard]] std::string greet(const std::string& greeting) const { return greeting + ", " + name; }
};

/// Whether a Function of such a target can be made without allocating.
template <class Target>
bool lives_inside(Target target) {
    try {
        const AllocationsFailAfter none{0};
        const Function<void()> function(std::move(target));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

}  // namespace

TEST_CASE("A Function is 32 bytes, and can be moved without throwing but not copied") {
    using Any = Function<int(std::string, double&)>;
    STATIC_REQUIRE(sizeof(Any) == 32);
    STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Any>);
    STATIC_REQUIRE(std::is_nothrow_move_assignable_v<Any>);
    STATIC_REQUIRE_FALSE(std::is_copy_constructible_v<Any>);
    STATIC_REQUIRE_FALSE(std::is_copy_assignable_v<Any>);
}

TEST_CASE("A Function is made only from what can be called like it") {
    STATIC_REQUIRE(std::is_convertible_v<int (*)(int), Function<long(short)>>);
    STATIC_REQUIRE(std::is_convertible_v<int (*)(int), Function<void(int)>>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<Function<int(int)>, int (*)(std::string)>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<Function<std::string(int)>, int (*)(int)>);
    STATIC_REQUIRE_FALSE(std::is_constructible_v<Function<void()>, int>);
}

TEST_CASE("A Function calls its target and returns its result") {
    Function<int(int)> function = [offset = 40](int number) { return offset + number; };
    REQUIRE(function(2) == 42);
    function = &twice;
    REQUIRE(function(21) == 42);
    function = twice;
    REQUIRE(function(4) == 8);
    Function<std::string(const Person&, const std::string&)> member = &Person::greet;
    REQUIRE(member(Person{"Ada"}, "Hello") == "Hello, Ada");
    Function<std::string&(Person&)> name = &Person::name;
    Person person{"Ada"};
    REQUIRE(&name(person) == &person.name);
}

TEST_CASE("A Function keeps the state of its target between calls") {
    Function<int()> next = [count = 0]() mutable { return ++count; };
    next();
    Function<int()> same = std::move(next);
    REQUIRE(same() == 2);
    REQUIRE(same() == 3);
}

TEST_CASE("A Function copies a target that is still needed elsewhere") {
    const auto target = [text = std::string(100, 'x')] { return text.size(); };
    Function<std::size_t()> first = target, second = target;
    REQUIRE(first() == 100);
    REQUIRE(second() == 100);
    REQUIRE(target() == 100);
}

TEST_CASE("A Function holds a target that can only be moved") {
    Function<int()> function = [number = std::make_unique<int>(7)] { return *number; };
    Function<int()> moved = std::move(function);
    REQUIRE(moved() == 7);
}

TEST_CASE("A Function takes and returns what can only be moved") {
    Function<std::unique_ptr<int>(std::unique_ptr<int>)> increment = [](std::unique_ptr<int> number) {
        ++*number;
        return number;
    };
    auto number = std::make_unique<int>(7);
    const int* address = number.get();
    number = increment(std::move(number));
    REQUIRE(number.get() == address);
    REQUIRE(*number == 8);
}

TEST_CASE("A Function passes references through") {
    int number = 7;
    Function<int&(int&)> same = [](int& given) -> int& { return ++given; };
    REQUIRE(&same(number) == &number);
    REQUIRE(number == 8);
    Function<const int*(const int&)> address = [](const int& given) { return &given; };
    REQUIRE(address(number) == &number);
    Function<void(std::string &&)> swallow = [](std::string&& text) { const std::string taken(std::move(text)); };
    std::string text(100, 'x');
    swallow(std::move(text));
    REQUIRE(text.empty());
}

TEST_CASE("A Function lets the exceptions of its target out") {
    Function<void()> function = [] { throw std::runtime_error("no"); };
    REQUIRE_THROWS_AS(function(), std::runtime_error);
    REQUIRE(function);
}

TEST_CASE("A target of up to three words lives inside its Function") {
    std::array<void*, 3> three_words{};
    REQUIRE(lives_inside([] {}));
    REQUIRE(lives_inside([three_words] { (void)three_words; }));
    REQUIRE(lives_inside([number = std::make_unique<int>(7)] { (void)number; }));
}

TEST_CASE("A target that is larger, stricter aligned or may throw when it moves is allocated") {
    struct alignas(16) Aligned {
        bool operator()() const { return reinterpret_cast<std::uintptr_t>(this) % 16 == 0; }
    };
    struct MayThrow {
        MayThrow() = default;
        MayThrow(const MayThrow&) {}
        void operator()() const {}
    };
    std::array<void*, 4> four_words{};
    REQUIRE_FALSE(lives_inside([four_words] { (void)four_words; }));
    REQUIRE_FALSE(lives_inside(Aligned{}));
    REQUIRE_FALSE(lives_inside(MayThrow{}));
    std::vector<Function<bool()>> functions;
    for (int count = 0; count < 10; ++count) functions.emplace_back(Aligned{});
    for (auto& function : functions) REQUIRE(function());
}

TEMPLATE_TEST_CASE("Moving a Function allocates nothing and leaves an empty one", "", Small, Large) {
    int alive = 0;
    Function<int()> first = TestType(alive), second, third;
    {
        const AllocationsFailAfter none{0};
        second = std::move(first);
        Function<int()> passing(std::move(second));
        third = std::move(passing);
    }
    REQUIRE_FALSE(first);
    REQUIRE_FALSE(second);
    REQUIRE(third);
    REQUIRE(third() == 1);
}

TEST_CASE("A target that lives inside is moved by its own constructor") {
    struct KnowsItsAddress {
        const KnowsItsAddress* self = this;
        KnowsItsAddress() = default;
        KnowsItsAddress(KnowsItsAddress&&) noexcept {}
        bool operator()() const { return self == this; }
    };
    Function<bool()> function = KnowsItsAddress{};
    Function<bool()> moved = std::move(function);
    REQUIRE(moved());
}

TEMPLATE_TEST_CASE("A Function destroys its target exactly once", "", Small, Large) {
    int alive = 0;
    {
        Function<int()> function = TestType(alive);
        REQUIRE(alive == 1);
        Function<int()> other = std::move(function);
        REQUIRE(alive == 1);
        function = std::move(other);
        REQUIRE(alive == 1);
        function = TestType(alive);
        REQUIRE(alive == 1);
        auto& same = function;
        function = std::move(same);
        REQUIRE(alive == 1);
        REQUIRE(function() == 1);
        other = TestType(alive);
        REQUIRE(alive == 2);
        other = nullptr;
        REQUIRE(alive == 1);
        REQUIRE_FALSE(other);
    }
    REQUIRE(alive == 0);
}

TEST_CASE("A Function that could not be allocated leaves nothing behind") {
    int alive = 0;
    {
        Large target(alive);
        const auto make = [&] {
            const AllocationsFailAfter none{0};
            const Function<int()> function(std::move(target));
        };
        REQUIRE_THROWS_AS(make(), std::bad_alloc);
        REQUIRE(alive == 1);
    }
    REQUIRE(alive == 0);
}

TEST_CASE("Nothing, a null pointer and an empty std::function make an empty Function") {
    int (*no_function)(int) = nullptr;
    std::string Person::*no_member = nullptr;
    REQUIRE_FALSE(Function<void()>());
    REQUIRE_FALSE(Function<void()>(nullptr));
    REQUIRE_FALSE(Function<int(int)>(no_function));
    REQUIRE_FALSE(Function<std::string(const Person&)>(no_member));
    REQUIRE_FALSE(Function<int(int)>(std::function<int(int)>()));
    REQUIRE(Function<int(int)>(std::function<int(int)>(&twice)));
}

TEST_CASE("An empty std::function of another signature makes an empty Function too") {
    REQUIRE_FALSE(Function<void()>(std::function<int()>()));
    REQUIRE_FALSE(Function<void(int)>(std::function<void(long)>()));
}

TEST_CASE("A Function can be used by the destructor of the target that it replaces") {
    Function<int()> function;
    int seen = 0;
    SECTION("that lived inside") {
        function = [at_end = AtEnd([&] { seen = function(); })] { return 1; };
    }
    SECTION("that was allocated") {
        function = [at_end = AtEnd([&] { seen = function(); }), rest = std::array<void*, 4>{}] { return rest.empty(); };
    }
    function = [] { return 2; };
    REQUIRE(seen == 2);
}

TEST_CASE("A Function can be assigned by the destructor of the target that it replaces") {
    Function<int()> function;
    function = [at_end = AtEnd([&] { function = [] { return 3; }; })] { return 1; };
    function = [] { return 2; };
    REQUIRE(function() == 3);
}

TEST_CASE("A Function can take over one that its own target owns") {
    struct Chain {
        std::unique_ptr<Function<int()>> next;
        int operator()() const { return 1; }
    };
    auto next = std::make_unique<Function<int()>>([] { return 2; });
    auto& owned = *next;
    Function<int()> function = Chain{std::move(next)};
    function = std::move(owned);
    REQUIRE(function() == 2);
}
