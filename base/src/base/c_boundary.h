// The boundary from C++ to C: every exception of a body becomes a status, so that none leaves the library. If
// there is no memory for an error message, a preallocated status is returned.
#pragma once

#include "base/status.h"

namespace halyard {

// RESOURCE_EXHAUSTED: "out of host memory". Allocates nothing.
Status out_of_memory() noexcept;
// The status of the current exception. Only within a handler.
Status caught_exception() noexcept;

// The status of `body`, a function that returns Result<>.
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
