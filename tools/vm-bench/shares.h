// What of a call is spent in the machine, in what it imports, on devices.
#pragma once

#include "bench.h"

namespace halyard::tools {

// Percent of the wall time of a call. Devices that work at the same time as the host, or on several threads,
// count beside it: the sum may pass 100.
struct Shares {
  double machine = 0;
  double hal = 0;  // the functions of `hal` and of other native modules, submission included
  double device = 0;
};

// Of warm calls that are traced, in a program of their own: tracing costs time, which those that are measured
// must not pay.
Result<Shares> measure_shares(Bench& bench, const Measured& function);

}  // namespace halyard::tools
