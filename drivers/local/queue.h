// Queue work: waits, one operation, signals. What is due is done at once on the caller's thread. What is not
// is held, with copies of what was only borrowed, and done by whoever makes the last wait come true, in
// DueList::run().
#pragma once

#include "device.h"
#include "status.h"
#include "timeline.h"

namespace halyard::local {

// As queue_submit in driver.h. Work that it makes due goes to `due`.
Result<> submit(Device& device, const halyard_submission_t& submission, DueList& due);

}  // namespace halyard::local
