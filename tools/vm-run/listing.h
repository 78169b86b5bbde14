// The lists of --list_drivers (with --explain), --list_devices and --list_functions.
#pragma once

#include <chrono>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

// Drivers and devices are listed after each driver was tried in a process of its own, for at most `limit`. A
// bad driver is reported on standard error and left out; if it was asked for by name, that is a failure.
Result<> list_drivers(Handle<halyard_instance_t> instance, std::chrono::nanoseconds limit);
// Each place and file of the search: taken or refused, and why.
Result<> explain_drivers(halyard_instance_t instance);
// Lists the devices of all drivers if the name is empty.
Result<> list_devices(Handle<halyard_instance_t> instance, const std::string& driver,
                      std::chrono::nanoseconds limit);
// The same with descriptions.
Result<> dump_devices(Handle<halyard_instance_t> instance, const std::string& driver,
                      std::chrono::nanoseconds limit);
Result<> list_functions(halyard_module_t module);

}  // namespace halyard::tools
