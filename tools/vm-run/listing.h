// The lists of --list_drivers (with --explain), --list_devices and --list_functions.
#pragma once

#include <chrono>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

// Tries each driver in a separate process, for at most `limit`, before listing drivers or devices. A bad
// driver is reported on standard error and omitted; it is a failure if the user named it.
Result<> list_drivers(const Instance& instance, std::chrono::nanoseconds limit);
// Each place and file of the search: accepted or refused, and the reason.
Result<> explain_drivers(const Instance& instance);
// Lists the devices of all drivers if the name is empty.
Result<> list_devices(const Instance& instance, const std::string& driver, std::chrono::nanoseconds limit);
// Also prints descriptions.
Result<> dump_devices(const Instance& instance, const std::string& driver, std::chrono::nanoseconds limit);
Result<> list_functions(const Module& module);

}  // namespace halyard::tools
