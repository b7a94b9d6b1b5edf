// The smallest program that uses an installed vigil.
#include <chrono>
#include <iostream>
#include <vigil/vigil.hpp>

int main() {
    vigil::Loop loop;
    bool ran = false;
    loop.add_timer(std::chrono::milliseconds(1), [&ran] { ran = true; });
    loop.run();
    std::cout << vigil::version() << '\n';
    return ran ? 0 : 1;
}
