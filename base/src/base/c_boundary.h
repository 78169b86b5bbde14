// The boundary from C++ to C: converts every exception of a body to a status, so that none leaves the
// library. If there is no memory for an error message, it returns a preallocated status.
#pragma once

#include "base/status.h"

namespace halyard {

// RESOURCE_EXHAUSTED: "out of host memory". Does not allocate.
Status out_of_memory() noexcept;
// The status of the current exception. Only within a handler.
Status caught_exception() noexcept;

// Calls `body`, which returns Result<>, and returns its status.
template <typename Body>
Status outcome_of(Body&& body) noexcept {
  try {
    return to_status(body());
  } catch (...) {
    return caught_exception();
  }
}

template <typename Body>
halyard_status_t guarded(Body&& body) noexcept {
  return outcome_of(std::forward<Body>(body)).release();
}

}  // namespace halyard
