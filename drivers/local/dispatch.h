// Dispatch: a kernel, run once for each workgroup of a grid, by this thread and, where that is worth it, by
// others.
#pragma once

#include "execution.h"

namespace halyard::local {

Result<> dispatch(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
