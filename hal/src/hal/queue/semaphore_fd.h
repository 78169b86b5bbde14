// Passes semaphores between drivers: a device waits for a semaphore of its own driver, which follows that of
// the other driver. If both devices support descriptors for semaphores of the same kind and group, the
// semaphore is imported: the devices wait for each other directly, and the host only passes on failures,
// because descriptors do not carry failures. Otherwise the host bridges the semaphores.
#pragma once

#include "base/status.h"
#include "hal/queue/fence.h"

namespace halyard::hal {

// Whether `user` can import what `owner` exports [R110].
bool can_pass(const Device& owner, const Device& user);

// A timepoint of `device` that is reached, or fails, with the other driver's timepoint. Waiters retain the
// semaphore. The semaphore is only imported if the work that signals it has been submitted to its device
// [R111], because otherwise two devices could wait for each other. Thread-safe.
Result<Timepoint> own_timepoint(Device& device, const Timepoint& timepoint);

}  // namespace halyard::hal
