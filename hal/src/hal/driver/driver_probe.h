// A driver tried out: all of its code that looking for devices runs, one step after another. Where that code
// crashes or hangs so does the caller, who may want to be a process of its own.
#pragma once

#include <string>

#include "base/status.h"
#include "hal/driver/driver_library.h"

namespace halyard::hal {

// Load, negotiate, initialize, list the devices, open and close each of them, shut down. `progress` is told
// before each step. Fails as DriverLibrary::open() and enumerate() do; a device that cannot be opened is no
// failure of the driver: it may be in use.
Result<> probe_driver(const std::string& path, const DriverProgress& progress);

}  // namespace halyard::hal
