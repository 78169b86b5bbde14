// linked_drivers.inc contains HALYARD_LINKED_DRIVER(name) for each driver that CMake links
// (bindings/c/CMakeLists.txt).
#include "linked_drivers.h"

#define HALYARD_LINKED_DRIVER(name)                                                           \
  extern "C" int32_t halyard_driver_negotiate_##name(const halyard_driver_request_t* request, \
                                                     halyard_driver_reply_t* reply);
#include "linked_drivers.inc"
#undef HALYARD_LINKED_DRIVER

namespace halyard::c {

std::vector<hal::LinkedDriver> linked_drivers() {
  return {
#define HALYARD_LINKED_DRIVER(name) {#name, halyard_driver_negotiate_##name},
#include "linked_drivers.inc"
#undef HALYARD_LINKED_DRIVER
  };
}

}  // namespace halyard::c
