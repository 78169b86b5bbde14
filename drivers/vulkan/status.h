// Failures of this driver: those of the kit, with fmt messages.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "halyard/driver/failure.hpp"

namespace halyard::vulkan {

using kit::check_extensions;
using kit::Failure;
using kit::guarded;
using kit::Services;
using kit::Status;
using kit::view;
template <typename T = void>
using Result = kit::Result<T>;

// fail(HALYARD_NOT_FOUND, "no device '{}'", name) converts to any failed Result.
template <typename... Args>
Failure fail(halyard_status_code_t code, fmt::format_string<Args...> format, Args&&... args) {
  return {code, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace halyard::vulkan
