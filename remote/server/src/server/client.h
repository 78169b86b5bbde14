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
#include "server/account.h"
#include "server/blob_store.h"
#include "server/blobs.h"
#include "server/limits.h"

namespace halyard::device_server {

struct Client {
  std::string name;                  // "CN=laptop", "uid 1000"
  std::unique_ptr<Account> account;  // null if all connections are served by one process
  Ref<Budget> memory;
  std::shared_ptr<BlobStore> store;     // null if that is in another process
  std::unique_ptr<Blobs> blobs;         // null in a process that serves no connection
  size_t connections = 0;               // guarded by what counts them
  std::atomic<bool> is_traced = false;  // a connection has a traced device of its own
};

// Of a connection whose client is not known.
inline constexpr const char* kWhyStrangersEnd = "it did not say who it is, while others were waiting";

// Counts the connections of clients. Thread-safe.
class Clients {
 public:
  virtual ~Clients() = default;
  // Counts a connection. `key` tells clients apart. RESOURCE_EXHAUSTED: too many.
  virtual Result<std::shared_ptr<Client>> begin(const std::string& key, const std::string& name) = 0;
  virtual void end(Client& client) = 0;
};

// All clients of a server.
class AllClients final : public Clients {
 public:
  enum class Serving : uint8_t { in_this_process, in_others };
  AllClients(const Limits& limits, Serving serving) : limits_(limits), serving_(serving) {}
  Result<std::shared_ptr<Client>> begin(const std::string& key, const std::string& name) override;
  void end(Client& client) override;
  size_t connections() const;
  size_t cached_bytes() const;
  size_t memory_bytes() const;

 private:
  Result<std::shared_ptr<Client>> make_client(const std::string& name) const;

  const Limits limits_;
  const Serving serving_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::shared_ptr<Client>> clients_;
  size_t connections_ = 0;
};

}  // namespace halyard::device_server
