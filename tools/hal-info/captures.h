// The verbs about captures (docs/captures.md): printing one, and replaying it on a device.
#pragma once

#include <string>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// A description of the capture, as text or JSON.
Result<std::string> capture_description(const Flags& flags, const std::string& path);
// Replays and prints the outcome of each execution. Returns exit status 1 if one differs or fails.
Result<int> replay_capture(const Flags& flags, const std::string& path);

}  // namespace halyard::tools
