// Where C++ meets C: whatever comes out of a body becomes a status, so that no exception leaves the library.
#pragma once

#include <exception>
#include <new>

#include "base/status.h"

namespace halyard {

// Runs `body`, a function to Result<>.
template <typename Body>
halyard_status_t guarded(Body&& body) noexcept {
  try {
    return to_status(body()).release();
  } catch (const std::bad_alloc&) {
    return Status(Code::RESOURCE_EXHAUSTED, "out of host memory").release();
  } catch (const std::exception& exception) {
    return Status(Code::INTERNAL, exception.what()).release();
  }
}

}  // namespace halyard
