// Transfer: a copy between devices that share no memory, through the host.
#pragma once

#include "base/status.h"
#include "hal/queue/operations.h"

namespace halyard::hal {

// A copy whose arguments have been checked. Each device copies between its memory and its
// host-visible staging memory. When the first copy has completed, the host copies between the two, on the
// thread that reports the completion.
Result<> transfer(const QueuePoint& point, const Copy& copy);

}  // namespace halyard::hal
