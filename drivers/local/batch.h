// Batch: commands that no barrier parts, or one dispatch, shared out between whichever workers of the device
// have nothing else to do. Each of them takes tiles, a few workgroups of a dispatch or the whole of another
// command, in the order of the commands. The thread that has the batch takes tiles, too, and waits at the end
// for those who took the last ones; it waits for nobody who has not begun.
#pragma once

#include <cstdint>
#include <span>

#include "estimate.h"
#include "execution.h"
#include "kernel_call.h"

namespace halyard::local {

// How many threads should help with this. Takes no lock where nobody should.
uint32_t helpers_for(const Load& load, const Execution& execution);

// All of the commands, with at least one helper. The failure is that of the first command that fails, and
// there of the first workgroup in the order of Worker::run.
Result<> share_out(std::span<const halyard_command_t* const> commands, uint64_t cost, uint32_t helpers,
                   const Execution& execution);

// The workgroups of a dispatch from `first` on, each of which takes about `each` nanoseconds.
Result<> share_out(const halyard_command_dispatch_t& command, const WorkgroupCount& count, uint64_t first,
                   uint64_t each, uint32_t helpers, const Execution& execution);

}  // namespace halyard::local
