// Server: offers devices to clients. The only header of this layer that its users include: it has neither the
// host's types nor those of a driver.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "remote/address.h"
#include "remote/tls.h"
#include "server/limits.h"

namespace halyard::device_server {

struct ServerOptions {
  std::vector<std::string> devices;       // URIs that are offered
  std::vector<std::string> driver_files;  // no others are looked for
  Limits limits;
  bool allows_native = false;             // machine code of clients
  std::vector<std::string> file_folders;  // whose files may be read for clients
  std::vector<uid_t> users;               // who may connect to Unix sockets, besides root and the own user
  // Each connection is served by a process of its own, so that a driver that crashes or hangs reaches no
  // other one. run() then forks: the process has no other threads that take locks.
  bool isolates = false;
  std::function<void(std::string_view)> log;  // one line; any thread; empty: no log
};

// Thread-safe.
class Server {
 public:
  // NOT_FOUND, or the driver's failure, if a device or a folder cannot be opened.
  static remote::Result<std::unique_ptr<Server>> create(ServerOptions options);
  virtual ~Server() = default;

  // Accepts connections on a listening socket. `tls`: null for Unix sockets and TCP without TLS.
  virtual void listen(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) = 0;
  // Answers GET /metrics and GET /healthz on a listening socket.
  virtual void listen_page(remote::Descriptor socket) = 0;
  // Takes over a connected socket, as if it had been accepted.
  virtual void take(remote::Descriptor socket, std::shared_ptr<remote::TlsContext> tls) = 0;
  // Serves on this thread and on threads of its own (with `isolates`: of each other process), until stop().
  virtual void run(unsigned threads) = 0;
  virtual void stop() = 0;
  // Numbers in the format of Prometheus.
  virtual std::string metrics() const = 0;
};

}  // namespace halyard::device_server
