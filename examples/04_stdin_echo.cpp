// examples/04_stdin_echo.cpp
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vigil/vigil.hpp>

using namespace std::chrono_literals;

// Echoes what is typed, piped or redirected from a file, and counts it; says so when nothing comes for two seconds.
int main() {
    vigil::Loop loop;

    std::size_t bytes = 0;
    vigil::TimerId silence{};
    const auto listen_for_silence = [&] {
        loop.cancel_timer(silence);
        silence = loop.add_timer(2s, [] { std::fputs("(still there?)\n", stderr); });
    };
    listen_for_silence();

    loop.add_read_stream(STDIN_FILENO, [&](int fd) {
        char buffer[4096];
        const auto got = read(fd, buffer, sizeof buffer);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {  // the end of the input
            loop.remove_read_stream(fd);
            loop.cancel_timer(silence);
            return;
        }
        bytes += static_cast<std::size_t>(got);
        std::fwrite(buffer, 1, static_cast<std::size_t>(got), stdout);
        std::fflush(stdout);
        listen_for_silence();
    });

    loop.run();
    std::fprintf(stderr, "%zu bytes\n", bytes);
}
