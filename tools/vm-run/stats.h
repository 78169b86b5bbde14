// --print_stats: statistics of a run, for people.
#pragma once

#include "common/program.h"

namespace halyard::tools {

// Prints to standard error. Releases the program's context and modules first, so that the objects that are
// left are kept by something else.
Result<> print_stats(Program& program);

}  // namespace halyard::tools
