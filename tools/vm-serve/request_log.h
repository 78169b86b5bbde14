// The log line of a request.
#pragma once

#include <string>
#include <string_view>

#include "log.h"
#include "socket.h"

namespace halyard::tools::serve {

// "127.0.0.1:50000", "[::1]:50000"; "unix" for a Unix socket; "" if it is unknown.
std::string address_text(const ClientSocket::endpoint_type& endpoint);

struct RequestLine {
  std::string_view method;
  std::string_view target;
  std::string client;
  std::string_view model;     // "": the request is for no model
  std::string_view version;   // "": not known
  std::string_view trace_id;  // of the client's traceparent; "": none
  Json status;                // a number of HTTP, or a code of gRPC
  size_t bytes = 0;           // of the response's body
  Clock::duration time{};
  std::string_view error;  // the body of a response from 400 on
};

// Empty fields are left out.
void log_request(Log& log, const RequestLine& line);

}  // namespace halyard::tools::serve
