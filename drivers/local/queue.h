// Queue work: waits, one operation, signals. On a device that runs in its caller, what is due is done at once
// on the caller's thread, and what is not is done by whoever makes the last wait come true. On a device with
// workers they do it, whoever makes it due. Until then it is held, with copies of what was only borrowed.
#pragma once

#include "device.h"
#include "status.h"
#include "timeline.h"

namespace halyard::local {

// As queue_submit in driver.h. Work that it makes due goes to `due`.
Result<> submit(Device& device, const halyard_submission_t& submission, DueList& due);

// As device_help in driver.h.
void help(Device& device, kit::Timepoints timepoints, bool any);

}  // namespace halyard::local
