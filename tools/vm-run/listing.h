// What --list_drivers (with --explain), --list_devices and --list_functions print.
#pragma once

#include <chrono>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

// Drivers and devices are listed after each driver was tried in a process of its own, for at most `limit`.
// One that is bad is told about on standard error and left out; asked for by its name, it is a failure.
Result<> list_drivers(Handle<halyard_instance_t> instance, std::chrono::nanoseconds limit);
// Each place and file that was looked at: taken or refused, and why.
Result<> explain_drivers(halyard_instance_t instance);
// Of all drivers where the name is empty.
Result<> list_devices(Handle<halyard_instance_t> instance, const std::string& driver,
                      std::chrono::nanoseconds limit);
// The same with descriptions.
Result<> dump_devices(Handle<halyard_instance_t> instance, const std::string& driver,
                      std::chrono::nanoseconds limit);
Result<> list_functions(halyard_module_t module);

}  // namespace halyard::tools
