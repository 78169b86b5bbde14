// The functions of functions.inc. Those of f32 are computed by polynomials of f64: the same bits on every
// processor, in the interpreter and in compiled code, which computes them with vectors. Errors are below
// 0.502 units in the last place. Those of f64 are the C library's.
//
// The templates of the other headers take a double, or a type that builds code for one (real.h). Products and
// sums must not be contracted to fused operations (-ffp-contract=off).
#pragma once

#include <cmath>

#include "vm/elementary/angles.h"
#include "vm/elementary/error_function.h"
#include "vm/elementary/exponentials.h"
#include "vm/elementary/logarithms.h"
#include "vm/elementary/remainder.h"

namespace halyard::vm {

// A NaN becomes quiet, except that x^0 and 1^y are 1.
#define UNARY(name, function)       \
  float function(float x) noexcept; \
  inline double function(double x) noexcept { return std::name(x); }
#define BINARY(name, in_c, function, one)    \
  float function(float x, float y) noexcept; \
  inline double function(double x, double y) noexcept { return std::in_c(x, y); }
#include "vm/elementary/functions.inc"
#undef UNARY
#undef BINARY

}  // namespace halyard::vm
