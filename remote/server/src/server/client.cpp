// A client is remembered when its last connection ends, because its next one may need the same bytes.
#include "server/client.h"

namespace halyard::device_server {

namespace {
constexpr size_t kRemembered = 1024;  // clients
}

Result<std::shared_ptr<Client>> AllClients::make_client(const std::string& name) const {
  auto client = std::make_shared<Client>();
  client->name = name;
  if (serving_ == Serving::in_others) {
    client->account = HALYARD_TRY(Account::create(limits_.connections_of_client + 1, limits_.memory));
    client->memory = client->account->budget(0);
  } else {
    client->memory = make<Budget>(limits_.memory);
  }
  client->store = HALYARD_TRY(BlobStore::create(limits_.cache, client->memory));
  if (serving_ == Serving::in_this_process)
    client->blobs =
        HALYARD_TRY(Blobs::create(client->store, client->store->file(), client->store->capacity()));
  return client;
}

Result<std::shared_ptr<Client>> AllClients::begin(const std::string& key, const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (connections_ >= limits_.connections)
    return fail(Code::RESOURCE_EXHAUSTED,
                "the server has {} connections already; raise --max_connections of vm-device", connections_);
  auto found = clients_.find(key);
  if (found == clients_.end()) {
    if (clients_.size() >= kRemembered)
      std::erase_if(clients_, [](const auto& each) { return each.second->connections == 0; });
    Result<std::shared_ptr<Client>> made = make_client(name);
    if (!made) {
      // Those that are remembered have files.
      std::erase_if(clients_, [](const auto& each) { return each.second->connections == 0; });
      made = make_client(name);
    }
    found = clients_.emplace(key, HALYARD_TRY(std::move(made))).first;
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

void AllClients::end(Client& client) {
  const std::lock_guard lock(mutex_);
  --client.connections;
  --connections_;
}

size_t AllClients::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_;
}

size_t AllClients::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [key, client] : clients_) sum += client->store->used();
  return sum;
}

size_t AllClients::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [key, client] : clients_) sum += client->memory->used();
  return sum;
}

}  // namespace halyard::device_server
