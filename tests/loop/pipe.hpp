#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vigil/loop/loop.hpp>

namespace vigil::testing {

/// A pipe whose ends close themselves.
class Pipe {
   public:
    Pipe() {
        if (::pipe(ends_) != 0) std::abort();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_reader();
        close_writer();
    }

    [[nodiscard]] int reader() const { return ends_[0]; }
    [[nodiscard]] int writer() const { return ends_[1]; }
    void close_reader() { close(0); }
    void close_writer() { close(1); }

    void write(std::string_view text) const {
        if (::write(ends_[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
    }

   private:
    void close(int end) {
        if (const int fd = std::exchange(ends_[end], -1); fd >= 0) ::close(fd);
    }

    int ends_[2];
};

/// Once the pipe is readable, appends "io " to `order` and stops listening.
inline void note_when_readable(Loop& loop, const Pipe& pipe, std::string& order) {
    loop.add_read_stream(pipe.reader(), [&](int fd) {
        order += "io ";
        loop.remove_read_stream(fd);
    });
}

/// What can be read from `fd` now: "" at its end or when there is nothing.
inline std::string read_some(int fd) {
    std::string text(4096, '\0');
    const auto bytes = ::read(fd, text.data(), text.size());
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
}

}  // namespace vigil::testing
