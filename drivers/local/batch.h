// Batch: a dispatch, or the commands between two barriers, shared with idle threads of the device's pool.
// Threads take tiles in the order of the commands; a tile is a few workgroups of a dispatch or a whole
// command of another kind. The thread that owns the batch takes tiles too. At the end it waits for the tiles
// in progress, but not for helper threads that have taken none.
#pragma once

#include <cstdint>
#include <span>

#include "command_cost.h"
#include "execution.h"
#include "kernel_call.h"

namespace halyard::local {

// The number of threads that should help. Takes no lock if the answer is 0 because of the cost.
uint32_t helpers_for(const Load& load, const Execution& execution);

// Runs all of the commands with at least one helper thread. Returns the failure of the first command that
// fails, at its first failing workgroup in the order of KernelRunner::run.
Result<> share_out(std::span<const halyard_command_t* const> commands, uint64_t cost, uint32_t helpers,
                   const Execution& execution);

// Runs the workgroups of a dispatch from `first` on; each takes about `each` nanoseconds.
Result<> share_out(const halyard_command_dispatch_t& command, const WorkgroupCount& count, uint64_t first,
                   uint64_t each, uint32_t helpers, const Execution& execution);

}  // namespace halyard::local
