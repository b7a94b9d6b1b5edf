#pragma once

#include <cstdint>

namespace vigil {

/// What became of an item, for an observer that need not note all of it again.
enum class Change : std::uint8_t {
    added,     ///< it is new
    replaced,  ///< its data is new, and perhaps its due
    appended,  ///< it has one more fragment of data, its last, and perhaps a new due
    moved,     ///< only its place in the order and the count of its pushes or its last taking are new
    sealed,    ///< as moved; and its key does not find it any more
};

/// The observer of a queue that nobody observes; costs nothing. Another one has the same two members, which must not
/// throw nor touch the queue. They are called when the change is complete. A slot is a small number that belongs to one
/// item as long as that is in the queue. restore() reports nothing.
struct NoObserver {
    template <class Item>
    static void changed(std::uint32_t /*slot*/, const Item& /*item*/, Change /*change*/) noexcept {}
    static void removed(std::uint32_t /*slot*/) noexcept {}
};

}  // namespace vigil
