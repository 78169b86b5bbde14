// Failures of connections as failures of the kit.
#pragma once

#include <utility>

#include "halyard/driver.hpp"
#include "remote/failure.h"

namespace halyard::remote {

inline halyard::kit::Failure to_kit(Failure failure) { return {failure.code, std::move(failure.message)}; }

template <typename T>
halyard::kit::Result<T> to_kit(Result<T> result) {
  if (!result) return to_kit(std::move(result.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

}  // namespace halyard::remote
