// The list of sessions.
#include "server.h"

#include <utility>
#include <vector>

#include "session.h"

namespace halyard::tools::serve {

bool Server::add(Session* session, std::weak_ptr<Session> reference) {
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= limits.connections || is_draining()) return false;
  sessions_.emplace(session, std::move(reference));
  metrics.connections.store(static_cast<int64_t>(sessions_.size()), std::memory_order_relaxed);
  return true;
}

void Server::remove(Session* session) {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(session);
    metrics.connections.store(static_cast<int64_t>(sessions_.size()), std::memory_order_relaxed);
    if (sessions_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

void Server::for_each(void (Session::*action)()) {
  std::vector<std::shared_ptr<Session>> sessions;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, reference] : sessions_)
      if (auto session = reference.lock()) sessions.push_back(std::move(session));
  }
  for (const auto& session : sessions) (session.get()->*action)();
}

void Server::drain(std::function<void()> drained) {
  {
    const std::lock_guard lock(mutex_);
    is_draining_ = true;
    if (!sessions_.empty()) drained_ = std::exchange(drained, nullptr);
  }
  if (drained) return drained();
  for_each(&Session::drain);
}

void Server::close_all() { for_each(&Session::close); }

void Server::look_at_clients() { for_each(&Session::look); }

}  // namespace halyard::tools::serve
