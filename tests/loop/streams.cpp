#include <fcntl.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "loop/pipe.hpp"
#include "loop/ways_to_run.hpp"

using namespace std::chrono_literals;
using namespace vigil::testing;

namespace {

bool is_nonblocking(int fd) { return (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0; }

class SocketPair {
   public:
    SocketPair() {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    }
    SocketPair(const SocketPair&) = delete;
    SocketPair& operator=(const SocketPair&) = delete;
    ~SocketPair() {
        for (const int fd : ends) {
            if (fd >= 0) ::close(fd);
        }
    }
    int ends[2];
};

}  // namespace

TEMPLATE_LIST_TEST_CASE("A readable stream calls its listener until it is removed", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("abc");
    std::string got;
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        char byte;
        if (::read(fd, &byte, 1) == 1) got += byte;
        if (got.size() == 3) way.loop.remove_read_stream(fd);
    });
    way.run();
    CHECK(got == "abc");
}

TEMPLATE_LIST_TEST_CASE("Read and write listeners share one file descriptor", "", EveryWay) {
    TestType way;
    SocketPair sockets;
    std::string order;
    way.loop.add_write_stream(sockets.ends[0], [&](int fd) {
        order += "write ";
        CHECK(::write(sockets.ends[1], "x", 1) == 1);
        way.loop.remove_write_stream(fd);
    });
    way.loop.add_read_stream(sockets.ends[0], [&](int fd) {
        order += "read ";
        way.loop.remove_read_stream(fd);
    });
    way.run();
    CHECK(order == "write read ");
}

TEMPLATE_LIST_TEST_CASE("A read listener that removes the write listener is the last to be called", "", EveryWay) {
    TestType way;
    SocketPair sockets;
    REQUIRE(::write(sockets.ends[1], "x", 1) == 1);
    std::string order;
    way.loop.add_read_stream(sockets.ends[0], [&](int fd) {
        order += "read ";
        way.loop.remove_write_stream(fd);
        way.loop.remove_read_stream(fd);
    });
    way.loop.add_write_stream(sockets.ends[0], [&](int) { order += "write "; });
    way.run();
    CHECK(order == "read ");
}

TEMPLATE_LIST_TEST_CASE("A second listener for the same direction is an error and replaces nothing", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        order += "first";
        way.loop.remove_read_stream(fd);
    });
    CHECK_THROWS_AS(way.loop.add_read_stream(pipe.reader(), [&](int) { order += "second"; }), std::logic_error);
    way.run();
    CHECK(order == "first");
}

TEMPLATE_LIST_TEST_CASE("A listener may remove itself and add another for the same stream", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.write("x");
    std::string order;
    way.loop.add_read_stream(pipe.reader(), [&](int fd) {
        order += "first ";
        way.loop.remove_read_stream(fd);
        way.loop.add_read_stream(fd, [&](int again) {
            order += "second ";
            way.loop.remove_read_stream(again);
        });
    });
    way.run();
    CHECK(order == "first second ");
}

TEMPLATE_LIST_TEST_CASE("A peer that has hung up is reported as readable", "", EveryWay) {
    TestType way;
    Pipe pipe;
    pipe.close_writer();
    SocketPair sockets;
    ::close(std::exchange(sockets.ends[1], -1));
    int hung_up = 0;
    for (const int fd : {pipe.reader(), sockets.ends[0]}) {
        way.loop.add_read_stream(fd, [&](int ready) {
            CHECK(read_some(ready).empty());
            ++hung_up;
            way.loop.remove_read_stream(ready);
        });
    }
    way.run();
    CHECK(hung_up == 2);
}

TEMPLATE_LIST_TEST_CASE("A writer whose reader is gone is called, for as long as it listens", "", EveryWay) {
    TestType way;
    Pipe pipe;
    std::signal(SIGPIPE, SIG_IGN);
    pipe.close_reader();
    int called = 0;
    way.loop.add_write_stream(pipe.writer(), [&](int fd) {
        CHECK(::write(fd, "x", 1) == -1);
        if (++called == 3) way.loop.remove_write_stream(fd);
    });
    way.run();
    std::signal(SIGPIPE, SIG_DFL);
    CHECK(called == 3);
}

TEMPLATE_LIST_TEST_CASE("Removing the last listener lets the loop end, and removing none has no effect", "", EveryWay) {
    TestType way;
    Pipe pipe;
    way.loop.remove_read_stream(pipe.reader());
    way.loop.remove_write_stream(12345);
    way.loop.add_read_stream(pipe.reader(), [](int) { FAIL(); });
    way.loop.remove_write_stream(pipe.reader());
    way.loop.add_timer(2ms, [&] { way.loop.remove_read_stream(pipe.reader()); });
    way.run();
    way.loop.remove_read_stream(pipe.reader());
}

TEMPLATE_LIST_TEST_CASE("A bad file descriptor is a clear error", "", EveryWay) {
    TestType way;
    CHECK_THROWS_AS(way.loop.add_read_stream(-1, [](int) {}), std::system_error);
    CHECK_THROWS_WITH(way.loop.add_read_stream(4000, [](int) {}), Catch::Contains("file descriptor 4000"));
    way.run();
}

TEMPLATE_LIST_TEST_CASE("A file descriptor closed behind our back is an error when a listener is added to it", "",
                        EveryWay) {
    TestType way;
    SocketPair sockets;
    const int fd = sockets.ends[0];
    way.loop.add_read_stream(fd, [](int) {});
    way.loop.add_write_stream(fd, [](int) {});
    way.loop.remove_write_stream(fd);
    ::close(std::exchange(sockets.ends[0], -1));
    CHECK_THROWS_WITH(way.loop.add_write_stream(fd, [](int) {}), Catch::Contains("was closed while watched"));
    way.loop.remove_read_stream(fd);
    way.run();
}

TEMPLATE_LIST_TEST_CASE("Regular files and /dev/null are always ready", "", EveryWay) {
    TestType way;
    std::FILE* file = std::tmpfile();
    std::fputs("hello", file);
    std::rewind(file);
    const int null = ::open("/dev/null", O_RDWR);
    std::string got;
    bool null_ended = false, null_written = false, timer = false;
    way.loop.add_read_stream(fileno(file), [&](int fd) {
        const auto text = read_some(fd);
        got += text;
        if (text.empty() && timer) way.loop.remove_read_stream(fd);
    });
    way.loop.add_read_stream(null, [&](int fd) {
        null_ended = read_some(fd).empty();
        way.loop.remove_read_stream(fd);
    });
    way.loop.add_write_stream(null, [&](int fd) {
        null_written = ::write(fd, "x", 1) == 1;
        way.loop.remove_write_stream(fd);
    });
    way.loop.add_timer(2ms, [&] { timer = true; });  // what is always ready starves nobody
    way.run();
    CHECK(got == "hello");
    CHECK(null_ended);
    CHECK(null_written);
    ::close(null);
    std::fclose(file);
}

TEST_CASE("O_NONBLOCK is as it was once the listeners are removed") {
    Pipe blocking, nonblocking;
    fcntl(nonblocking.reader(), F_SETFL, O_NONBLOCK);
    {
        vigil::Loop loop;
        loop.add_read_stream(blocking.reader(), [](int) {});
        loop.add_read_stream(nonblocking.reader(), [](int) {});
        CHECK(is_nonblocking(blocking.reader()));
        loop.remove_read_stream(blocking.reader());
        loop.remove_read_stream(nonblocking.reader());
        CHECK_FALSE(is_nonblocking(blocking.reader()));
        CHECK(is_nonblocking(nonblocking.reader()));
        loop.add_read_stream(blocking.reader(), [](int) {});
    }
    CHECK_FALSE(is_nonblocking(blocking.reader()));  // the loop's end counts as a removal
}
