// What --list_drivers (with --explain), --list_devices and --list_functions print.
#pragma once

#include <string>

#include "common/failure.h"

namespace halyard::tools {

Result<> list_drivers(halyard_instance_t instance);
// Each place and file that was looked at: taken or refused, and why.
Result<> explain_drivers(halyard_instance_t instance);
Result<> list_devices(halyard_instance_t instance, const std::string& driver);
// With descriptions; of all drivers where the name is empty.
Result<> dump_devices(halyard_instance_t instance, const std::string& driver);
Result<> list_functions(halyard_module_t module);

}  // namespace halyard::tools
