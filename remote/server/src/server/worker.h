// A process that serves one connection, which another process has accepted.
#pragma once

#include <memory>
#include <vector>

#include "remote/address.h"
#include "remote/tls.h"
#include "server/numbers.h"
#include "server/server.h"

namespace halyard::device_server {

struct WorkerStart {
  const ServerOptions& options;
  const std::vector<std::shared_ptr<remote::TlsContext>>& tls;
  unsigned threads;  // that handle messages
  int control;       // to the process that listens (server/control.h)
  int line;          // its end asks this process to end
  std::shared_ptr<Counts> counts;
  pid_t parent;
  bool tries_devices;  // a device that cannot be opened is a failure to start
};

// Called in the child after fork(): the descriptors that are named, and the standard ones, stay open. Says
// `ready`, serves the connection that it gets, and ends the process.
[[noreturn]] void run_worker(const WorkerStart& start);

}  // namespace halyard::device_server
