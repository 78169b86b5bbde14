// --print_stats: what a run took, for people.
#pragma once

#include "common/program.h"

namespace halyard::tools {

// To standard error. Releases the program's context and modules first, so that the objects that are left are
// those that something else keeps.
Result<> print_stats(Program& program);

}  // namespace halyard::tools
