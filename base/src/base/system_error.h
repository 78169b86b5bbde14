// What the system says of a file, as a status code.
#pragma once

#include <cerrno>

#include "base/status.h"

namespace halyard {

// Of an errno: NOT_FOUND, PERMISSION_DENIED, else UNAVAILABLE.
inline Code code_of_errno(int number) {
  if (number == ENOENT || number == ENOTDIR) return Code::NOT_FOUND;
  if (number == EACCES || number == EPERM) return Code::PERMISSION_DENIED;
  return Code::UNAVAILABLE;
}

}  // namespace halyard
