// Dispatch: runs a kernel for each workgroup of a grid, on this thread and, if that saves time, on helper
// threads.
#pragma once

#include "execution.h"

namespace halyard::local {

Result<> dispatch(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
