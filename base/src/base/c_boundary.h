// Where C++ meets C, and where what fails must not fail again: whatever comes out of a body becomes a status,
// so that no exception leaves the library. Where there is no memory for the words of a failure, one that was
// made beforehand stands in.
#pragma once

#include "base/status.h"

namespace halyard {

// RESOURCE_EXHAUSTED: "out of host memory". Takes none.
Status out_of_memory() noexcept;
// What the exception that is being handled means. Only within a handler.
Status caught_exception() noexcept;

// What `body`, a function to Result<>, comes to.
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
