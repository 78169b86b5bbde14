// How a function of either library tells over its C boundary why it did not do something.
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

namespace halyard::jit {

// 1 where `work(why)` returns true. Else 0, and `reason` has what it put into `why`, or what it threw, cut to
// `reason_size` bytes and ended with a zero.
template <typename Work>
int told(char* reason, size_t reason_size, Work work) {
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
