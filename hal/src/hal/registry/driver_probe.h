// Tries a driver: runs all of its code that a search for devices runs, step by step. If that code crashes or
// hangs, so does the caller, which should therefore be a separate process.
#pragma once

#include <string>

#include "base/status.h"
#include "hal/driver/driver_library.h"

namespace halyard::hal {

// Load, negotiate, initialize, list the devices, open and close each of them, shut down. `progress` is called
// before each step. Fails like DriverLibrary::open() and enumerate(). A device that cannot be opened is not a
// failure: it may be in use.
Result<> probe_driver(const std::string& path, const DriverProgress& progress);

}  // namespace halyard::hal
