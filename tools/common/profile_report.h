// Prints a profile, as a table and as JSON. docs/profiling.md describes both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/json.h"
#include "common/machine_peaks.h"
#include "common/profile.h"

namespace halyard::tools {

enum class ProfileDetail { table, all };

struct ProfileReport {
  std::string function;
  uint64_t calls =
      1;  // in the profiled time; times, operations and bytes are divided by it. Steps are of one call
  ProfileSums sums;
  MachinePeaks peaks;
  double compile_ns = 0;              // spent on compiling during the profiled time, on any thread
  uint64_t compiled = 0;              // functions and kernels
  std::string no_compiler;            // why there is none, or empty
  std::optional<double> untraced_ns;  // of a call without a trace
};

// Ends with a newline. `detail` all: each function of the host is a row, and no rows are left out.
std::string profile_table(const ProfileReport& report, ProfileDetail detail);
Json profile_json(const ProfileReport& report);

}  // namespace halyard::tools
