// The bodies of requests to the repository API (Triton's model repository extension): index, load, unload.
#pragma once

#include <string_view>

#include "common/failure.h"
#include "route.h"

namespace halyard::tools::serve {

inline constexpr size_t kMaxControlBody = 64 << 10;

struct ControlRequest {
  bool only_ready = false;  // of the index: omits models that are not ready
};

// INVALID_ARGUMENT: a parameter of a load that would change what is loaded.
Result<> check_load_parameter(std::string_view name);

// An empty body is an empty object; unknown members are ignored. INVALID_ARGUMENT: malformed, or a load with
// a configuration or with files, which come from the folder alone.
Result<ControlRequest> parse_control_request(Endpoint endpoint, std::string_view body);

}  // namespace halyard::tools::serve
