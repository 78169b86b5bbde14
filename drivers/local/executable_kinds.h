// Finds the kind of device code by the format of an executable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "executable.h"

namespace halyard::local {

// Returns HALYARD_GRADE_* and the reason. If `data` is null, only the format is graded.
uint32_t grade_executable(const Device& device, std::string_view format, std::span<const uint8_t> data,
                          std::string& reason);

// NOT_FOUND: no kind has the format.
Result<std::unique_ptr<halyard_driver_executable>> load_executable(const Device& device,
                                                                   const halyard_executable_args_t& args);

}  // namespace halyard::local
