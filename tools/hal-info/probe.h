// A driver tried out in a process of its own, so that one that crashes or hangs is told about and hurts
// nobody.
#pragma once

#include <chrono>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

// Runs this program again to try the driver (halyard_driver_probe) and gives what that says. INTERNAL: the
// driver crashed, or ended the process; DEADLINE_EXCEEDED: it gave no answer in time and was killed. Both
// name the step.
Result<> probe_driver(const std::string& path, std::chrono::nanoseconds limit);

// The argument by which this program knows that it is such a process; a path follows it.
inline constexpr char kProbeArgument[] = "--probe-driver";
// What such a process does; its exit status.
int probe_main(const char* path);

}  // namespace halyard::tools
