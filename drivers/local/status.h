// Failures of this driver. Inside, code returns Result<> as the virtual machine does; the host knows only
// statuses of its own, which the kit makes of them.
#pragma once

#include <expected>
#include <utility>

#include "base/status.h"
#include "halyard/driver/failure.hpp"

namespace halyard {

// For the kit: what the host is told of a failure, with the notes of where it passed.
kit::Failure to_failure(const Status& status);

}  // namespace halyard

namespace halyard::local {

using kit::Services;
using kit::view;
using HostStatus = kit::Status;

// A result of the kit's, for code that returns those of the virtual machine.
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
