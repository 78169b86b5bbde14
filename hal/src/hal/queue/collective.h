// Executes a recording with collectives. The device executes the other commands; for each collective the host
// passes the bytes to the channel's provider, without a copy if they are host-visible.
#pragma once

#include <span>

#include "base/status.h"
#include "hal/queue/execution.h"

namespace halyard::hal {

// Like submit_execute(), for a recording with collectives. Handles the point's wait itself.
Result<> execute_collectives(const QueuePoint& point, CommandBuffer& commands,
                             std::span<const SlotEntry> entries, Reservation reservation);

}  // namespace halyard::hal
