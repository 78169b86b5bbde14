// The sides of a comparison of captures: a capture on a device, and the bytes that it has recorded.
#pragma once

#include <memory>
#include <string>

#include "common/failure.h"
#include "common/flags.h"
#include "side.h"

namespace halyard::tools {

// Whether the file begins as captures do.
bool is_capture(const std::string& path);

// Replays all executions on the device of --device or, without it, on those of the capture. The flags must
// outlive the side.
std::unique_ptr<Side> replay_side(const Flags& flags, std::string path, std::string description);

// The bytes that the capture has from after each execution. It has none from between two commands, so the
// steps are those of `other`, a replay of the same capture, whose bytes no later command of the execution has
// changed.
std::unique_ptr<Side> recorded_side(Side& other, std::string path, std::string description);

}  // namespace halyard::tools
