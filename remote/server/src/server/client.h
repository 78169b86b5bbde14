// Client: who is at the other end of some connections, and what these may use together. The same certificate,
// or the same user of this machine, is the same client.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/budget.h"
#include "base/status.h"
#include "server/blob_cache.h"
#include "server/limits.h"

namespace halyard::device_server {

struct Client {
  Client(std::string who, const Limits& limits)
      : name(std::move(who)), memory(make<Budget>(limits.memory)), blobs(limits.cache, memory) {}
  const std::string name;  // "CN=laptop", "uid 1000"
  const Ref<Budget> memory;
  BlobCache blobs;
  size_t connections = 0;               // guarded by Clients
  std::atomic<bool> is_traced = false;  // a connection has a traced device of its own
};

// Thread-safe.
class Clients {
 public:
  explicit Clients(const Limits& limits) : limits_(limits) {}
  // Counts a connection. `key` tells clients apart. RESOURCE_EXHAUSTED: too many.
  Result<std::shared_ptr<Client>> begin(const std::string& key, const std::string& name);
  void end(Client& client);
  size_t connections() const;
  size_t cached_bytes() const;
  size_t memory_bytes() const;

 private:
  const Limits& limits_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::shared_ptr<Client>> clients_;
  size_t connections_ = 0;
};

}  // namespace halyard::device_server
