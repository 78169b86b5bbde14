// Failures of this driver. Its code returns Result<>, like the virtual machine; the kit converts failures to
// the host's statuses.
#pragma once

#include <expected>
#include <utility>

#include "base/status.h"
#include "halyard/driver/failure.hpp"

namespace halyard {

// Converts a status for the kit; the message includes the notes.
kit::Failure to_failure(const Status& status);

}  // namespace halyard

namespace halyard::local {

using kit::Services;
using kit::view;
using HostStatus = kit::Status;

// Converts a result of the kit into one of the virtual machine's type.
template <typename T>
Result<T> from_kit(kit::Result<T> result) {
  if (!result)
    return std::unexpected(
        Status(static_cast<Code>(result.failure().code), std::move(result.failure().message)));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

}  // namespace halyard::local
