// Tries drivers in separate processes: a driver that crashes or hangs is reported and does no other harm.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Runs this program again to try the driver (halyard_driver_probe), and returns the result. INTERNAL: the
// driver crashed, or ended the process. DEADLINE_EXCEEDED: it did not finish in time and was killed. Both
// messages name the step.
Result<> probe_driver(const std::string& path, std::chrono::nanoseconds limit);
// Tries several drivers concurrently. The failures are in the order of the paths; nullopt: the driver works.
std::vector<std::optional<Failure>> probe_drivers(std::span<const std::string> paths,
                                                  std::chrono::nanoseconds limit);

// The argument that makes a tool such a process; a path follows. run_tool() checks for it.
inline constexpr char kProbeArgument[] = "--probe-driver";
// The main function of such a process. Returns the exit status.
int probe_main(const char* path);

// The time limit for trying a driver: the value of this flag, or 10 s.
Result<std::chrono::nanoseconds> probe_limit(const Flags& flags, const Duration& flag);

}  // namespace halyard::tools
