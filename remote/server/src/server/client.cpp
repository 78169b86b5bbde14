// A client is remembered when its last connection ends, because its next one may need the same bytes.
#include "server/client.h"

namespace halyard::device_server {

namespace {
constexpr size_t kRemembered = 1024;  // clients
}

Result<std::shared_ptr<Client>> Clients::begin(const std::string& key, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (connections_ >= limits_.connections)
    return fail(Code::RESOURCE_EXHAUSTED,
                "the server has {} connections already; raise --max_connections of vm-device", connections_);
  auto found = clients_.find(key);
  if (found == clients_.end()) {
    if (clients_.size() >= kRemembered)
      std::erase_if(clients_, [](const auto& each) { return each.second->connections == 0; });
    found = clients_.emplace(key, std::make_shared<Client>(name, limits_)).first;
  }
  Client& client = *found->second;
  if (client.connections >= limits_.connections_of_client)
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "client '{}' has {} connections already; close some, or raise --max_client_connections of vm-device",
        name, client.connections);
  ++client.connections;
  ++connections_;
  return found->second;
}

void Clients::end(Client& client) {
  const std::lock_guard lock(mutex_);
  --client.connections;
  --connections_;
}

size_t Clients::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

size_t Clients::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [key, client] : clients_) sum += client->blobs.used();
  return sum;
}

size_t Clients::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [key, client] : clients_) sum += client->memory->used();
  return sum;
}

}  // namespace halyard::device_server
