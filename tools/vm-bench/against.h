// --against: the same calls by another runner, in turns with this one's.
#pragma once

#include <string>

#include "bench.h"
#include "common/failure.h"
#include "common/flags.h"
#include "report.h"

namespace halyard::tools {

// INVALID_ARGUMENT: flags that do not go with --against.
Result<> check_against(const Flags& flags);

// Measures every function in rounds: one run here, one of the other runner, in an order that changes with
// every round. Reports the median of each and their ratio. UNAVAILABLE: the other cannot be run; ABORTED: it
// has failed; INVALID_ARGUMENT: what it prints is not understood. What has been measured by then is reported.
Result<> compare(const Flags& flags, Bench& bench, Report& report);

}  // namespace halyard::tools
