#include "loop/signals.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace vigil {

SignalId Signals::add(int signum, Function<void(int)> callback) {
    auto listener = std::make_shared<Listener>(Listener{SignalId{++last_id_}, signum, std::move(callback)});
    const auto found = watchers_.find(signum);
    if (found != watchers_.end()) {
        found->second.listeners.push_back(listener);
        return listener->id;
    }
    Watcher watcher{{loop_, this, "uv_signal_init", uv_signal_init}, {listener}};
    const int status = uv_signal_start(
        watcher.handle.get(),
        [](uv_signal_t* handle, int number) {
            auto& signals = *static_cast<Signals*>(handle->data);
            const auto& listeners = signals.watchers_.at(number).listeners;
            signals.undelivered_.insert(signals.undelivered_.end(), listeners.begin(), listeners.end());
            signals.deliver();
        },
        signum);
    throw_if_failed(status, ("cannot listen for signal " + std::to_string(signum)).c_str());
    watchers_.emplace(signum, std::move(watcher));
    return listener->id;
}

void Signals::remove(SignalId listener) {
    for (auto watcher = watchers_.begin(); watcher != watchers_.end(); ++watcher) {
        auto& listeners = watcher->second.listeners;
        const auto found =
            std::find_if(listeners.begin(), listeners.end(), [&](const Shared& each) { return each->id == listener; });
        if (found == listeners.end()) continue;
        const Shared removed = std::move(*found);
        removed->removed = true;
        listeners.erase(found);
        if (listeners.empty()) watchers_.erase(watcher);
        return;
    }
}

void Signals::clear() noexcept {
    const auto dropped = std::exchange(watchers_, {});
    const auto undelivered = std::exchange(undelivered_, {});
}

void Signals::deliver() noexcept {
    while (callbacks_.allowed() && !undelivered_.empty()) {
        const Shared listener = std::move(undelivered_.front());
        undelivered_.pop_front();
        if (!listener->removed) callbacks_.call([&] { listener->callback(listener->signum); });
    }
}

}  // namespace vigil
