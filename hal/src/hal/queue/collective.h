// Executing a recording with collectives: the device runs what is between them, the host hands the bytes to
// the channel's provider, without a copy where the host sees them.
#pragma once

#include <span>

#include "base/status.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// As submit_execute(), for a recording with collectives. Waits for the point's wait itself.
Result<> execute_collectives(const QueuePoint& point, CommandBuffer& commands,
                             std::span<const SlotEntry> entries);

}  // namespace halyard::hal
