// Transfer: a copy between devices that share no memory, through the host.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

// As queue_copy, which has checked the arguments. Each device copies between its own memory and memory of its
// own that the host sees; the host copies between those two as soon as the first is done, on the thread that
// says so.
Result<> transfer(const QueuePoint& point, Buffer& source, uint64_t source_offset, Buffer& target,
                  uint64_t target_offset, uint64_t length);

}  // namespace halyard::hal
