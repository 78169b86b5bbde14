// Reports the reason of a failure over the C boundary between the compiler library and its code generator.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

namespace halyard::jit {

// Returns 1 if `work(why)` returns true. Otherwise returns 0 and sets `reason` to `why`, or to the text of
// the exception: zero-terminated, truncated to `reason_size` bytes.
template <typename Work>
int with_failure_reason(char* reason, size_t reason_size, Work work) {
  std::string why;
  try {
    if (work(why)) return 1;
  } catch (const std::exception& error) {
    why = error.what();
  }
  std::snprintf(reason, reason_size, "%s", why.c_str());
  return 0;
}

}  // namespace halyard::jit
