#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

namespace vigil {

template <class Signature>
class Function;

namespace detail {
template <class Target>
inline constexpr bool is_std_function = false;
template <class Signature>
inline constexpr bool is_std_function<std::function<Signature>> = true;
}  // namespace detail

/// A move-only callable: every callback of the library is type-erased by this one class, once.
///
/// 32 bytes. A target of up to three words that moves without throwing lives inside; others are allocated. Moving a
/// Function never throws; an empty one may be destroyed, assigned and tested, and must not be called.
template <class Result, class... Args>
class Function<Result(Args...)> {
   public:
    Function() noexcept = default;
    Function(std::nullptr_t) noexcept {}

    /// A null function pointer and an empty std::function make an empty Function.
    template <class Target>
    requires(!std::same_as<std::remove_cvref_t<Target>, Function> &&
             std::is_invocable_r_v<Result, std::decay_t<Target>&, Args...>) Function(Target&& target) {
        using Stored = std::decay_t<Target>;
        constexpr bool may_be_null =
            std::is_pointer_v<Stored> || std::is_member_pointer_v<Stored> || detail::is_std_function<Stored>;
        if constexpr (may_be_null && !std::is_function_v<std::remove_reference_t<Target>>) {
            if (target == nullptr) return;
        }
        if constexpr (fits_inside<Stored>) {
            ::new (static_cast<void*>(storage_)) Stored(std::forward<Target>(target));
            operations_ = &inside<Stored>;
        } else {
            auto* allocated = new Stored(std::forward<Target>(target));
            std::memcpy(storage_, &allocated, sizeof allocated);
            operations_ = &outside<Stored>;
        }
    }

    Function(Function&& other) noexcept { take(other); }
    Function& operator=(Function&& other) noexcept {
        if (this != &other) {
            Function old(std::move(*this));  // destroyed last: its target may reach back to this Function
            take(other);
        }
        return *this;
    }
    ~Function() {
        if (operations_ != nullptr && operations_->destroy != nullptr) operations_->destroy(storage_);
    }

    Function(const Function&) = delete;
    Function& operator=(const Function&) = delete;

    [[nodiscard]] explicit operator bool() const noexcept { return operations_ != nullptr; }

    Result operator()(Args... args) {
        assert(operations_ != nullptr && "an empty Function was called");
        return operations_->call(storage_, std::forward<Args>(args)...);
    }

   private:
    static constexpr std::size_t inside_bytes = 3 * sizeof(void*);

    struct Operations {
        Result (*call)(void* storage, Args&&... args);
        void (*relocate)(void* from, void* to) noexcept;  // null: the bytes may simply be copied
        void (*destroy)(void* storage) noexcept;          // null: nothing to do
    };

    template <class Stored>
    static constexpr bool fits_inside =
        sizeof(Stored) <= inside_bytes &&
        alignof(Stored) <= alignof(void*) && std::is_nothrow_move_constructible_v<Stored>;

    template <class Stored>
    static Stored& target_inside(void* storage) noexcept {
        return *std::launder(static_cast<Stored*>(storage));
    }
    template <class Stored>
    static Stored& target_outside(void* storage) noexcept {
        Stored* allocated;
        std::memcpy(&allocated, storage, sizeof allocated);
        return *allocated;
    }

    template <class Stored>
    static constexpr Operations inside{
        [](void* storage, Args&&... args) -> Result {
            return static_cast<Result>(std::invoke(target_inside<Stored>(storage), std::forward<Args>(args)...));
        },
        std::is_trivially_copyable_v<Stored> ? nullptr
                                             : +[](void* from, void* to) noexcept {
                                                   auto& source = target_inside<Stored>(from);
                                                   ::new (to) Stored(std::move(source));
                                                   source.~Stored();
                                               },
        std::is_trivially_destructible_v<Stored>
            ? nullptr
            : +[](void* storage) noexcept { target_inside<Stored>(storage).~Stored(); },
    };

    template <class Stored>
    static constexpr Operations outside{
        [](void* storage, Args&&... args) -> Result {
            return static_cast<Result>(std::invoke(target_outside<Stored>(storage), std::forward<Args>(args)...));
        },
        nullptr,
        [](void* storage) noexcept { delete &target_outside<Stored>(storage); },
    };

    void take(Function& other) noexcept {
        operations_ = std::exchange(other.operations_, nullptr);
        if (operations_ == nullptr) return;
        if (operations_->relocate != nullptr) {
            operations_->relocate(other.storage_, storage_);
        } else {
            std::memcpy(storage_, other.storage_, inside_bytes);
        }
    }

    alignas(void*) std::byte storage_[inside_bytes];
    const Operations* operations_ = nullptr;
};

}  // namespace vigil
