// The verbs for captures (docs/captures.md): printing a capture, replaying it on a device, cutting it.
#pragma once

#include <string>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// A description of the capture, as text or JSON.
Result<std::string> capture_description(const Flags& flags, const std::string& path);
// Replays each execution and prints the outcome. Returns exit status 1 if an execution differs or fails.
Result<int> replay_capture(const Flags& flags, const std::string& path);
// Writes one command of the capture, with its inputs, to a new capture.
Result<> cut_capture(const Flags& flags, const std::string& path);

}  // namespace halyard::tools
