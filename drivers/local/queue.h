// Queue work: waits, one operation, signals. On a device that runs in its caller, ready work runs at once, on
// the thread that made it ready by submitting or signalling. On a device with workers, they run it. Work that
// is not ready is held, with copies of everything that was borrowed.
#pragma once

#include "device.h"
#include "status.h"
#include "timeline.h"

namespace halyard::local {

// As queue_submit in driver.h. Tasks that become ready are added to `ready`.
Result<> submit(Device& device, const halyard_submission_t& submission, TaskList& ready);

// As device_help in driver.h: runs pending work on the calling thread, which is about to wait for
// `timepoints`.
void run_pending(Device& device, kit::Timepoints timepoints, bool any);

}  // namespace halyard::local
