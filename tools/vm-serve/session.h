// One connection: requests one after another, each answered before the next is read, so that pipelined
// requests are answered in their order.
#pragma once

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <memory>

#include "server.h"

namespace halyard::tools::serve {

using SessionExecutor = boost::asio::strand<boost::asio::io_context::executor_type>;
using SessionSocket =
    boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol, SessionExecutor>;

class Session {
 public:
  // Takes the connection over, or closes it if there are too many. `is_loopback`: of a listener on a loopback
  // address, so that Host is checked. The server must outlive it.
  static void start(Server& server, SessionSocket socket, bool is_loopback);
  virtual ~Session() = default;

  // Any thread. Closes the connection as soon as it has no request.
  virtual void drain() = 0;
  virtual void close() = 0;
  // Cancels a call that has gone on since the last look, if the client has closed the connection.
  virtual void look() = 0;
};

}  // namespace halyard::tools::serve
