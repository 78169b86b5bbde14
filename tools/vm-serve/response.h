// A response as it goes over the wire.
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
  std::string headers;  // further ones, each with its line end
  std::string body;
  std::vector<std::span<const std::byte>> tail;  // binary tensors, behind the body
  // What the tail lies in.
  std::vector<Output> outputs;
  std::vector<halyard::Value> results;
  Reservation reservation;  // of the memory for body and tail, until they are written
  bool closes = false;      // the connection is closed behind it

  size_t content_length() const;
  // Status line and header. `keep_alive` as the client asked for.
  std::string head(std::chrono::system_clock::time_point now) const;
};

// Of requests whose client has gone: nobody gets it, but logs and metrics show it, as those of nginx do.
inline constexpr unsigned kClientGone = 499;

std::string_view reason_of(unsigned status);

// An error as the protocol has it: {"error": "..."}. 503 asks the client to try again in a second.
Response error_response(unsigned status, std::string_view text);

// The text with absolute paths in quotes cut to their last part: "cannot read '/srv/a.irpa'" to "cannot read
// 'a.irpa'". Clients need not know where things lie.
std::string without_folders(std::string_view text);

// For failures of reading a request, and of a call: 400 is the request's fault, 500 the model's.
unsigned status_of_request(halyard_status_code_t code);
unsigned status_of_call(halyard_status_code_t code);

}  // namespace halyard::tools::serve
