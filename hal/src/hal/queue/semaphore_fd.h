// Passing: a device that waits for another driver's semaphore gets one of its own that follows it. If both
// support descriptors for semaphores of the same kind and group, the other semaphore is imported: the devices
// wait for each other directly, and the host only passes on failures, which descriptors do not carry.
// Otherwise the host bridges it.
#pragma once

#include "base/status.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// Whether `user` can import what `owner` exports [R110].
bool can_pass(const Device& owner, const Device& user);

// A timepoint of `device` that is reached, or fails, with the other driver's timepoint. Waiters keep the
// semaphore. The semaphore is only imported if the work that signals it has been handed to its device [R111]:
// otherwise two devices could wait for each other. Thread-safe.
Result<Timepoint> own_timepoint(Device& device, const Timepoint& timepoint);

}  // namespace halyard::hal
