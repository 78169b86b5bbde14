// --leaks: LeakSanitizer, preloaded into this program, finds what a driver has allocated and lost, in a
// driver that was built without any sanitizer.
#pragma once

#include <string>

#include "check.h"
#include "common/failure.h"

namespace halyard::cts {

// Whether a sanitizer that knows leaks is in this process.
bool can_find_leaks();

// Starts this program again with LeakSanitizer in front, with the same arguments; returns only where that is
// not possible. UNAVAILABLE: the system has no liblsan.
tools::Result<> restart_to_find_leaks();

// Tells what drivers have allocated and nothing points to any more, as one problem [R24]. When the driver is
// shut down and no handle of it is kept anywhere. Needs can_find_leaks().
void check_leaks(const Checks::Sink& problem);

}  // namespace halyard::cts
