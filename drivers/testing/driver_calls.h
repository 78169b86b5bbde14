// The driver linked into a test, and short functions for calling it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "halyard/driver.h"

namespace halyard::driver_tests {

// Names for fixtures.
struct Handles {
  using Memory = halyard_driver_memory_t;
  using Semaphore = halyard_driver_semaphore_t;
  using List = halyard_driver_command_list_t;
  using Executable = halyard_driver_executable_t;
};

inline halyard_text_t text(std::string_view string) { return {string.data(), string.size()}; }

inline const halyard_driver_table_t& table() {
  const halyard_driver_request_t request = {.struct_size = sizeof request,
                                            .abi_min = 1,
                                            .abi_max = 1,
                                            .sanitizer = HALYARD_SANITIZER_KIND,
                                            .host_version = "test"};
  halyard_driver_reply_t reply = {.struct_size = sizeof reply};
  if (!halyard_driver_negotiate(&request, &reply)) ADD_FAILURE() << reply.refusal;
  return *reply.table;
}

// Borrows all of its arguments.
inline halyard_executable_args_t executable_args(std::string_view format, const std::vector<uint8_t>& data,
                                                 const std::vector<uint32_t>& constants) {
  return {.struct_size = sizeof(halyard_executable_args_t),
          .constant_count = static_cast<uint32_t>(constants.size()),
          .format = text(format),
          .data = data.data(),
          .data_size = data.size(),
          .constants = constants.data(),
          .affinity = 1};
}

}  // namespace halyard::driver_tests
