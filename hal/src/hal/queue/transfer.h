// Transfer: a copy between devices that share no memory, through the host.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// Like queue_copy, which has checked the arguments. Each device copies between its memory and its
// host-visible staging memory. When the first copy has completed, the host copies between the two, on the
// thread that reports the completion.
Result<> transfer(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                  uint64_t target_offset, uint64_t length);

}  // namespace halyard::hal
