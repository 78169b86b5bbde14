// The process that listens: it accepts connections and gives each to a process of its own, counts them, and
// keeps the constants and the code of clients for their next connections. It reads no byte of a client, and
// loads no driver.
#pragma once

#include <memory>

#include "server/server.h"

namespace halyard::device_server {

// NOT_FOUND, or the driver's failure, if a device or a folder cannot be opened.
remote::Result<std::unique_ptr<Server>> create_supervisor(ServerOptions options);

}  // namespace halyard::device_server
