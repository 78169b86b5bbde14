// One connection. Each request is answered before the next is read, so pipelined requests are answered in
// order.
#pragma once

#include "server.h"
#include "socket.h"

namespace halyard::tools::serve {

// Takes over the connection, or closes it if there are too many. `is_loopback`: accepted on a loopback
// address, so Host is checked. The server must outlive the connection.
void start_connection(Server& server, ClientSocket socket, bool is_loopback);

}  // namespace halyard::tools::serve
