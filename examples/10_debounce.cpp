// examples/10_debounce.cpp
#include <iostream>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Events of the same entity collapse into one action: a product is indexed when it has not changed for 200 ms, or half
// a second after its first change if it never comes to rest.
int main() {
    vigil::Loop loop;

    vigil::loop::KeyedQueue changes(loop, [](const vigil::KeyedItem& item) {
        std::cout << "index " << item.key << ", price " << item.data.front() << ", after " << item.pushes << " changes"
                  << std::endl;
    });
    changes.set_defaults({.max_wait = 500ms});

    changes.push("product-1", "9.90", 200ms);
    changes.push("product-2", "20.00", 200ms);
    changes.push("product-1", "8.90", 200ms);
    changes.push("product-1", "7.90", 200ms);

    // This one changes every 50 ms, twenty times.
    int price = 100;
    vigil::TimerId busy{};
    busy = loop.add_periodic_timer(50ms, [&] {
        changes.push("product-3", std::to_string(price++), 200ms);
        if (price == 120) loop.cancel_timer(busy);
    });

    loop.run();  // until nothing is left to do
}
