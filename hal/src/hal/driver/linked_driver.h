// Drivers that are linked into the program instead of being loaded: those of a static build (HALYARD_STATIC).
#pragma once

#include <string>

#include "halyard/driver.h"

namespace halyard::hal {

struct LinkedDriver {
  std::string name;                       // as in halyard-driver-NAME.so
  halyard_driver_negotiate_fn negotiate;  // the driver's entry function
};

}  // namespace halyard::hal
