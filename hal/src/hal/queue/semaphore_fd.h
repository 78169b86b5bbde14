// Passing: a device that waits for another driver's semaphore is given one of its own. Where both have
// descriptors for semaphores, of one kind and group, that is the other's, imported: the devices then wait for
// each other and the host only carries failures, which descriptors do not. Otherwise the host bridges it.
#pragma once

#include "base/status.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// Whether `user` can import what `owner` exports [R110].
bool can_pass(const Device& owner, const Device& user);

// A timepoint of `device` that is reached when the other driver's is, or fails as it does. Whoever waits for
// it keeps the semaphore. Imported only where what signals it has been handed to its device [R111]: two
// devices that wait for what neither has yet could stand in each other's way. Any thread.
Result<Timepoint> own_timepoint(Device& device, const Timepoint& timepoint);

}  // namespace halyard::hal
