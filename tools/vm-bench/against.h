// --against: measures the same calls with another runner, alternately.
#pragma once

#include <string>

#include "bench.h"
#include "common/failure.h"
#include "common/flags.h"
#include "report.h"

namespace halyard::tools {

// INVALID_ARGUMENT: flags that exclude --against.
Result<> check_against(const Flags& flags);

// Measures every function in rounds: one run here and one run of the other runner, in alternating order.
// Reports the medians of both and their ratio. UNAVAILABLE: the other runner cannot be run. ABORTED: it has
// failed. INVALID_ARGUMENT: its output cannot be parsed. After a failure, the measured rounds are reported.
Result<> compare(const Flags& flags, Bench& bench, Report& report);

}  // namespace halyard::tools
