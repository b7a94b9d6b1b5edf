#include "loop/streams.hpp"

#include <fcntl.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace vigil {

namespace {

struct Listener {
    Function<void(int)> callback;
    bool removed = false;
};

}  // namespace

struct Streams::Watcher {
    Watcher(Streams& streams, int watched)
        : owner(streams), fd(watched), was_blocking((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0) {
        auto handle = std::make_unique<uv_poll_t>();
        const int status = uv_poll_init(owner.loop_, handle.get(), fd);
        if (status == UV_EPERM) return;  // a file that epoll refuses
        throw_if_failed(status, ("cannot watch file descriptor " + std::to_string(fd)).c_str());
        poll = UvHandle<uv_poll_t>(std::move(handle), this);
    }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;
    ~Watcher() {
        const int flags = fcntl(fd, F_GETFL);
        if (poll && was_blocking && flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }

    [[nodiscard]] bool always_ready() const noexcept { return !poll; }
    [[nodiscard]] std::shared_ptr<Listener>& listener(Direction direction) noexcept {
        return direction == Direction::read ? read : write;
    }

    /// Watches for what there are listeners for. A file descriptor that was closed behind our back is left alone:
    /// libuv would abort.
    bool watch() noexcept {
        if (always_ready()) return true;
        if (fcntl(fd, F_GETFD) < 0) return uv_poll_stop(poll.get()), false;
        return uv_poll_start(poll.get(), (read ? UV_READABLE : 0) | (write ? UV_WRITABLE : 0), on_event) == 0;
    }

    Streams& owner;
    const int fd;
    const bool was_blocking;
    UvHandle<uv_poll_t> poll;
    // Owned by the watcher, and by the call in progress, during which the listener may be removed.
    std::shared_ptr<Listener> read, write;
};

Streams::Streams(uv_loop_t* loop, Callbacks& callbacks) : loop_(loop), callbacks_(callbacks) {}
Streams::~Streams() = default;

void Streams::add(int fd, Direction direction, Function<void(int)> callback) {
    auto added = std::make_shared<Listener>(Listener{std::move(callback)});
    const auto found = watchers_.find(fd);
    if (found == watchers_.end()) {
        auto watcher = std::make_unique<Watcher>(*this, fd);
        watcher->listener(direction) = std::move(added);
        auto& kept = *watchers_.emplace(fd, std::move(watcher)).first->second;
        kept.watch();
        always_ready_ += kept.always_ready();
        return;
    }
    Watcher& watcher = *found->second;
    auto& listener = watcher.listener(direction);
    if (listener) {
        throw std::logic_error("file descriptor " + std::to_string(fd) + " already has a " +
                               (direction == Direction::read ? "read" : "write") + " listener");
    }
    listener = std::move(added);
    if (!watcher.watch()) {
        listener.reset();
        throw_if_failed(UV_EBADF, ("file descriptor " + std::to_string(fd) + " was closed while watched").c_str());
    }
}

void Streams::remove(int fd, Direction direction) {
    const auto found = watchers_.find(fd);
    if (found == watchers_.end() || !found->second->listener(direction)) return;
    Watcher& watcher = *found->second;
    const auto removed = std::exchange(watcher.listener(direction), nullptr);
    removed->removed = true;
    if (watcher.read || watcher.write) {
        watcher.watch();
    } else {
        always_ready_ -= watcher.always_ready();
        watchers_.erase(found);
    }
}

void Streams::clear() noexcept {
    const auto dropped = std::exchange(watchers_, {});
    always_ready_ = 0;
}

void Streams::call_always_ready() {
    if (!any_always_ready()) return;
    std::vector<int> ready_fds;
    for (const auto& [fd, watcher] : watchers_) {
        if (watcher->always_ready()) ready_fds.push_back(fd);
    }
    for (const int fd : ready_fds) {
        const auto found = watchers_.find(fd);
        if (found != watchers_.end() && found->second->always_ready()) ready(*found->second, true, true);
    }
}

/// The read listener may remove itself, the write listener and the watcher, or replace them.
void Streams::ready(const Watcher& watcher, bool readable, bool writable) noexcept {
    const int fd = watcher.fd;
    const auto read = readable ? watcher.read : nullptr;
    const auto write = writable ? watcher.write : nullptr;
    if (read) callbacks_.call([&] { read->callback(fd); });
    if (write && !write->removed) callbacks_.call([&] { write->callback(fd); });
}

void Streams::on_event(uv_poll_t* handle, int status, int events) {
    auto& watcher = *static_cast<Watcher*>(handle->data);
    // libuv stops the watcher when the peer is gone. The listeners shall find that out by reading or writing, for as
    // long as they stay.
    if (status < 0) watcher.watch();
    watcher.owner.ready(watcher, status < 0 || (events & UV_READABLE) != 0, status < 0 || (events & UV_WRITABLE) != 0);
}

}  // namespace vigil
