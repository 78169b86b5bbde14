// Errors of file operations as status codes.
#pragma once

#include <cerrno>

#include "base/status.h"

namespace halyard {

// Converts an errno: NOT_FOUND, PERMISSION_DENIED; INVALID_ARGUMENT for an impossible path (too long, or a
// loop of links); otherwise UNAVAILABLE.
inline Code code_of_errno(int number) {
  if (number == ENOENT || number == ENOTDIR) return Code::NOT_FOUND;
  if (number == EACCES || number == EPERM) return Code::PERMISSION_DENIED;
  if (number == ENAMETOOLONG || number == ELOOP) return Code::INVALID_ARGUMENT;
  return Code::UNAVAILABLE;
}

}  // namespace halyard
