// The shares of a call's time: in the register machine, in imported functions, on devices; and its profile.
#pragma once

#include <optional>

#include "bench.h"
#include "common/profile_report.h"

namespace halyard::tools {

// Percent of the wall time of a call. The sum can exceed 100, because devices can work concurrently with the
// host, or on several threads.
struct Shares {
  double machine = 0;
  double hal = 0;  // functions of `hal` and other native modules, including submission
  double device = 0;
};

// Measures the shares of warm calls with a trace. The calls run in a separate program, because tracing takes
// time that measured calls must not include.
Result<Shares> measure_shares(Bench& bench, const Measured& function);
// The profile of warm calls, measured in the same way: for the time of the row's calls, at least one.
Result<ProfileReport> measure_profile(Bench& bench, const Measured& function);

}  // namespace halyard::tools
