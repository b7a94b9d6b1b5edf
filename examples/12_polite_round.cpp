// examples/12_polite_round.cpp
#include <iostream>
#include <string>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// A crawler that is polite: it always visits the site that it has not seen for longest, no site more often than every
// ten seconds, and forgets one that was not announced again within a minute.
int main() {
    auto loop = vigil::Loop::with_virtual_time();
    vigil::loop::RoundQueue<std::string> sites(loop, {.dequeue_period = 10s, .ttl = 1min});

    const auto visit = [&] {
        const auto second = std::chrono::duration_cast<std::chrono::seconds>(loop.now().time_since_epoch()).count();
        std::cout << "at " << second << " s:";
        while (const auto site = sites.take()) std::cout << " " << site->id << site->value;
        std::cout << std::endl;
    };

    sites.put("a.example", "/");
    sites.put("b.example", "/");
    visit();  // both are new
    loop.advance(5s);
    sites.put("c.example", "/");
    visit();  // the new one; a and b were visited 5 s ago
    loop.advance(5s);
    sites.put("a.example", "/news");
    visit();  // a has something new, b has waited for ten seconds
    loop.advance(50s);
    std::cout << sites.size() << " sites are left" << std::endl;
    visit();  // b was announced a minute ago
}
