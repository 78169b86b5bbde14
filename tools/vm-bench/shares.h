// The shares of a call's time: in the register machine, in imported functions, on devices.
#pragma once

#include "bench.h"

namespace halyard::tools {

// Percent of the wall time of a call. Devices can work at the same time as the host, or on several threads,
// so the sum can exceed 100.
struct Shares {
  double machine = 0;
  double hal = 0;  // functions of `hal` and other native modules, including submission
  double device = 0;
};

// The shares of warm calls that are traced. They run in a program of their own, because tracing takes time
// that measured calls must not include.
Result<Shares> measure_shares(Bench& bench, const Measured& function);

}  // namespace halyard::tools
