// Accepts connections of listening sockets.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>

#include "remote/address.h"

namespace halyard::device_server {

// Until the io_context stops. `accepted` is called on its threads.
void accept_connections(boost::asio::io_context& io, remote::Descriptor listening,
                        std::function<void(remote::Descriptor)> accepted);

// Answers GET /metrics and GET /healthz on a listening socket, for at most 64 clients at once.
void accept_page(boost::asio::io_context& io, remote::Descriptor listening,
                 std::function<std::string()> metrics);

}  // namespace halyard::device_server
