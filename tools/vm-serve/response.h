// A response in the form that is sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "budget.h"
#include "common/failure.h"
#include "output.h"

namespace halyard::tools::serve {

inline constexpr std::string_view kJson = "application/json";
inline constexpr std::string_view kBinary = "application/octet-stream";

struct Response {
  unsigned status = 200;
  std::string_view content_type = kJson;
  std::string headers;  // additional header lines, each with its line end
  std::string body;
  std::vector<std::span<const std::byte>> tail;  // binary tensors, after the body
  // Own the memory of the tail.
  std::vector<Output> outputs;
  std::vector<halyard::Value> results;
  Reservation reservation;  // for body and tail, until they have been written
  bool closes = false;      // close the connection after the response

  size_t content_length() const;
  // Status line and header. `keep_alive` is the client's request.
  std::string head(std::chrono::system_clock::time_point now) const;
};

// The status of requests whose client has disconnected. It is not sent, but appears in logs and metrics, as
// in nginx.
inline constexpr unsigned kClientGone = 499;

std::string_view reason_of(unsigned status);

// The limit of an error's text, in bytes. Errors quote what clients send, and have no reserved memory.
inline constexpr size_t kMaxErrorText = 2 << 10;

// An error in the protocol's form: {"error": "..."}. 503 asks the client to retry after one second. Of the
// text, the first kMaxErrorText bytes are sent.
Response error_response(unsigned status, std::string_view text);

// Shortens absolute paths in quotes to their last part: "cannot read '/srv/a.irpa'" to "cannot read
// 'a.irpa'". Clients need not know the folders.
std::string without_folders(std::string_view text);

// For failures of reading a request, and of a call. 400: caused by the request; 500: by the model.
unsigned status_of_request(halyard_status_code_t code);
unsigned status_of_call(halyard_status_code_t code);

}  // namespace halyard::tools::serve
