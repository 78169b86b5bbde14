// --leaks: LeakSanitizer, preloaded into this program, finds memory that a driver has lost. The driver need
// not be built with a sanitizer.
#pragma once

#include <string>

#include "check.h"
#include "common/failure.h"

namespace halyard::cts {

// Whether a sanitizer that finds leaks is in this process.
bool can_find_leaks();

// Starts this program again with LeakSanitizer preloaded and the same arguments. Returns only if that fails.
// UNAVAILABLE: the system has no liblsan.
tools::Result<> restart_to_find_leaks();

// Reports memory that drivers have allocated and that nothing points to any more, as one problem [R24]. To be
// called when the driver is shut down and no handle of it is kept. Needs can_find_leaks().
void check_leaks(const Checks::Sink& problem);

}  // namespace halyard::cts
