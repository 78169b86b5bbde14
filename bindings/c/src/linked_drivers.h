// The drivers of a static build. libhalyard.so has none.
#pragma once

#include <vector>

#include "hal/driver/linked_driver.h"

namespace halyard::c {

std::vector<hal::LinkedDriver> linked_drivers();

}  // namespace halyard::c
