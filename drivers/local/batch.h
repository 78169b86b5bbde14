// Batch: commands between two barriers, or one dispatch, shared with the idle workers of the device. Each
// worker takes tiles in the order of the commands; a tile is a few workgroups of a dispatch, or one whole
// command of another kind. The thread that owns the batch takes tiles, too. At the end it waits for the tiles
// that have begun; it does not wait for a worker that has taken none.
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
