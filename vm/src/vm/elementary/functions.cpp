#include "vm/elementary/functions.h"

namespace halyard::vm {

#define UNARY(name, function)                                                                 \
  float function(float x) noexcept {                                                          \
    return x != x ? x + x : static_cast<float>(elementary::function(static_cast<double>(x))); \
  }
#define BINARY(name, in_c, function, one)                                                            \
  float function(float x, float y) noexcept {                                                        \
    if (x != x || y != y) return (one) && (x == 1 || y == 0) ? 1.0f : x + y;                         \
    return static_cast<float>(elementary::function(static_cast<double>(x), static_cast<double>(y))); \
  }
#include "vm/elementary/functions.inc"
#undef UNARY
#undef BINARY

}  // namespace halyard::vm
