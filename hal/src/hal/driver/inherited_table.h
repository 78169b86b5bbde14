// The functions of a device that was opened before fork(), in the child: what can fail does so with
// FAILED_PRECONDITION, what gives something back does nothing. No function reaches the driver, whose threads
// are not there and whose locks they may have held.
#pragma once

#include "halyard/driver.h"

namespace halyard::hal {

const halyard_driver_table_t& inherited_table();

}  // namespace halyard::hal
