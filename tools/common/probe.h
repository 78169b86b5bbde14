// A driver tried out in a process of its own, so that one that crashes or hangs is told about and hurts
// nobody.
#pragma once

#include <chrono>
#include <string>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Runs this program again to try the driver (halyard_driver_probe) and gives what that says. INTERNAL: the
// driver crashed, or ended the process; DEADLINE_EXCEEDED: it gave no answer in time and was killed. Both
// name the step.
Result<> probe_driver(const std::string& path, std::chrono::nanoseconds limit);

// The argument by which a tool knows that it is such a process; a path follows it. run_tool() looks for it.
inline constexpr char kProbeArgument[] = "--probe-driver";
// What such a process does; its exit status.
int probe_main(const char* path);

// How long a driver may take to be tried: --timeout, or 10 s.
Result<std::chrono::nanoseconds> probe_limit(const Flags& flags);

}  // namespace halyard::tools
