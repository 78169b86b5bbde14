// The function table, in the child, of a device that was opened before fork(). Functions that can fail return
// FAILED_PRECONDITION; functions that release something do nothing. No function calls the driver, because its
// threads do not exist in the child and its locks may be held.
#pragma once

#include "halyard/driver.h"

namespace halyard::hal {

const halyard_driver_table_t& inherited_table();

}  // namespace halyard::hal
