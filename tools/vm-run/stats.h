// --print_stats: statistics of a run, for people.
#pragma once

#include "common/program.h"

namespace halyard::tools {

// Prints to standard error. First releases the program's context and modules, so that something else holds
// the remaining objects.
Result<> print_stats(Program& program);

}  // namespace halyard::tools
