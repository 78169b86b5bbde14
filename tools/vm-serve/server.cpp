// The list of open connections.
#include "server.h"

#include <utility>
#include <vector>

namespace halyard::tools::serve {

bool Server::add(const std::shared_ptr<Connection>& connection) {
  const std::lock_guard lock(mutex_);
  if (connections_.size() >= limits.connections || is_draining()) return false;
  connections_.emplace(connection.get(), connection);
  metrics.connections.store(static_cast<int64_t>(connections_.size()), std::memory_order_relaxed);
  return true;
}

void Server::remove(Connection* connection) {
  std::function<void()> drained;
  {
    const std::lock_guard lock(mutex_);
    connections_.erase(connection);
    metrics.connections.store(static_cast<int64_t>(connections_.size()), std::memory_order_relaxed);
    if (connections_.empty()) drained = std::exchange(drained_, nullptr);
  }
  if (drained) drained();
}

void Server::for_each(void (Connection::*action)()) {
  std::vector<std::shared_ptr<Connection>> connections;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [address, reference] : connections_)
      if (auto connection = reference.lock()) connections.push_back(std::move(connection));
  }
  for (const auto& connection : connections) (connection.get()->*action)();
}

void Server::drain(std::function<void()> drained) {
  {
    const std::lock_guard lock(mutex_);
    is_draining_ = true;
    if (!connections_.empty()) drained_ = std::exchange(drained, nullptr);
  }
  if (drained) return drained();
  for_each(&Connection::drain);
}

void Server::close_all() { for_each(&Connection::close); }

void Server::look_at_clients() { for_each(&Connection::look); }

}  // namespace halyard::tools::serve
