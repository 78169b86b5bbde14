// What the system says of a file, as a status code.
#pragma once

#include <cerrno>

#include "base/status.h"

namespace halyard {

// Of an errno: NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT for a path that can name nothing, because it is
// too long or its links lead back to themselves; else UNAVAILABLE.
inline Code code_of_errno(int number) {
  if (number == ENOENT || number == ENOTDIR) return Code::NOT_FOUND;
  if (number == EACCES || number == EPERM) return Code::PERMISSION_DENIED;
  if (number == ENAMETOOLONG || number == ELOOP) return Code::INVALID_ARGUMENT;
  return Code::UNAVAILABLE;
}

}  // namespace halyard
