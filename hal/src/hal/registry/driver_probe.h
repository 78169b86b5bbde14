// Tries a driver: runs all of its code that a search for devices runs, step by step. If that code crashes or
// hangs, so does the caller, so call it in a separate process.
#pragma once

#include <string>

#include "base/status.h"
#include "hal/driver/driver_library.h"

namespace halyard::hal {

// Loads, negotiates, initializes, lists the devices, opens and closes each of them, and shuts down.
// `progress` is called before each step. Fails like DriverLibrary::open() and enumerate(). A device that
// cannot be opened is not a failure, because it may be in use.
Result<> probe_driver(const std::string& path, const DriverProgress& progress);

}  // namespace halyard::hal
