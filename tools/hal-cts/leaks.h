// --leaks: finds memory that a driver has leaked, with LeakSanitizer preloaded into this program. The driver
// need not be built with a sanitizer.
#pragma once

#include <string>

#include "check.h"
#include "common/failure.h"

namespace halyard::cts {

// Whether this process has a sanitizer that finds leaks.
bool can_find_leaks();

// Restarts this program with LeakSanitizer preloaded and the same arguments. Returns only on failure.
// UNAVAILABLE: the system has no liblsan.
tools::Result<> restart_to_find_leaks();

// Reports unreachable memory that drivers have allocated, as one problem [R24]. Call it after the driver has
// been shut down, without any handle of it. Precondition: can_find_leaks().
void check_leaks(const Checks::Sink& problem);

}  // namespace halyard::cts
