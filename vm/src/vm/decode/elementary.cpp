#include "vm/decode/elementary.h"

namespace halyard::vm {

namespace {

template <typename Function>
float of_f32(Function function, float x) {
  return x != x ? x + x : static_cast<float>(function(static_cast<double>(x)));
}

}  // namespace

float exponential(float x) noexcept { return of_f32(elementary::exponential<double>, x); }
float hyperbolic_tangent(float x) noexcept { return of_f32(elementary::hyperbolic_tangent<double>, x); }
float error_function(float x) noexcept { return of_f32(elementary::error_function<double>, x); }

}  // namespace halyard::vm
