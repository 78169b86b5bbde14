// Of the kit (halyard/driver.hpp): the names of queue operations, in traces, logs and tools. The library
// shares this header.
#ifndef HALYARD_DRIVER_OPERATION_NAME_HPP_
#define HALYARD_DRIVER_OPERATION_NAME_HPP_

#include <array>
#include <cstdint>

#include "halyard/driver.h"

namespace halyard::kit {

// The name of HALYARD_OPERATION_*; null for other numbers.
constexpr const char* operation_name(uint32_t operation) {
  constexpr std::array kNames = {"barrier", "alloca", "dealloca", "fill",     "update",
                                 "copy",    "read",   "write",    "dispatch", "execute"};
  static_assert(kNames.size() == HALYARD_OPERATION_EXECUTE + 1);
  return operation < kNames.size() ? kNames[operation] : nullptr;
}

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_OPERATION_NAME_HPP_
