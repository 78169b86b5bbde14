// Queue work: waits, one operation, signals. On a device without workers, ready work runs at once on the
// thread that made it ready by submitting or signalling. On a device with workers, the workers run it. Work
// that is not ready is held, together with copies of all borrowed data.
#pragma once

#include "device.h"
#include "status.h"
#include "timeline.h"

namespace halyard::local {

// See queue_submit in driver.h. Adds tasks that become ready to `ready`.
Result<> submit(Device& device, const halyard_submission_t& submission, TaskList& ready);

// See device_help in driver.h. Runs pending work on the calling thread, which is about to wait for
// `timepoints`.
void run_pending(Device& device, kit::Timepoints timepoints, bool any);

}  // namespace halyard::local
