// The functions that the interpreter calls for instructions that are no matter of a few machine instructions.
// Compiled code calls the same, so its results are the same.
#include "vm/compile/helpers.h"

#include <cmath>

#include "vm/format/opcodes.h"
#include "vm/run/arithmetic.h"

namespace halyard::vm {

namespace {

template <typename Function>
const void* address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

std::array<const void*, kOpCount> all_helpers() {
  std::array<const void*, kOpCount> helpers = {};
#define UNARY(name, function)                                          \
  helpers[static_cast<size_t>(Op::name##_f32)] =                       \
      address(+[](float x) noexcept -> float { return function(x); }); \
  helpers[static_cast<size_t>(Op::name##_f64)] =                       \
      address(+[](double x) noexcept -> double { return function(x); });
#define BINARY(name, function)                                                     \
  helpers[static_cast<size_t>(Op::name##_f32)] =                                   \
      address(+[](float x, float y) noexcept -> float { return function(x, y); }); \
  helpers[static_cast<size_t>(Op::name##_f64)] =                                   \
      address(+[](double x, double y) noexcept -> double { return function(x, y); });
  BINARY(rem, std::remainder)
  BINARY(atan2, std::atan2)
  BINARY(pow, std::pow)
  UNARY(atan, std::atan)
  UNARY(cos, std::cos)
  UNARY(sin, std::sin)
  UNARY(exp, std::exp)
  UNARY(exp2, std::exp2)
  UNARY(expm1, std::expm1)
  UNARY(log, std::log)
  UNARY(log10, std::log10)
  UNARY(log1p, std::log1p)
  UNARY(log2, std::log2)
  UNARY(tanh, std::tanh)
  UNARY(erf, std::erf)
  // Not called: a compiler asks them what they make of a signaling NaN.
  UNARY(ceil, std::ceil)
  UNARY(floor, std::floor)
#undef UNARY
#undef BINARY
  helpers[static_cast<size_t>(Op::cast_f32_ui64)] =
      address(+[](float x) noexcept -> uint64_t { return to_u64(x); });
  return helpers;
}

}  // namespace

std::span<const void* const> compiled_helpers() {
  static const std::array<const void*, kOpCount> helpers = all_helpers();
  return helpers;
}

}  // namespace halyard::vm
