// The functions that the interpreter calls for instructions that take more than a few machine instructions.
// Compiled code calls the same functions, so its results are the same.
#include "vm/compile/helpers.h"

#include <bit>
#include <cmath>

#include "vm/decode/arithmetic.h"
#include "vm/elementary/functions.h"

namespace halyard::vm {

namespace {

template <typename Function>
const void* address(Function* function) {
  return reinterpret_cast<const void*>(function);
}

// Not inlined, because the C++ compiler would round constants itself.
template <typename Float>
[[gnu::noinline]] Float up(Float x) {
  return std::ceil(x);
}
template <typename Float>
[[gnu::noinline]] Float down(Float x) {
  return std::floor(x);
}

std::array<const void*, kOpCount> all_helpers() {
  std::array<const void*, kOpCount> helpers = {};
#define UNARY(name, function)                                          \
  helpers[static_cast<size_t>(Op::name##_f32)] =                       \
      address(+[](float x) noexcept -> float { return function(x); }); \
  helpers[static_cast<size_t>(Op::name##_f64)] =                       \
      address(+[](double x) noexcept -> double { return function(x); });
#define BINARY(name, in_c, function, one)                                          \
  helpers[static_cast<size_t>(Op::name##_f32)] =                                   \
      address(+[](float x, float y) noexcept -> float { return function(x, y); }); \
  helpers[static_cast<size_t>(Op::name##_f64)] =                                   \
      address(+[](double x, double y) noexcept -> double { return function(x, y); });
#include "vm/elementary/functions.inc"
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

uint32_t kept_nans() {
  static const uint32_t kept = [] {
    const volatile uint32_t narrow = 0x7F800001;
    const volatile uint64_t wide = 0x7FF0000000000001;
    const auto x = std::bit_cast<float>(uint32_t{narrow});
    const auto y = std::bit_cast<double>(uint64_t{wide});
    return (std::bit_cast<uint32_t>(up(x)) == narrow ? 1u : 0u) |
           (std::bit_cast<uint64_t>(up(y)) == wide ? 2u : 0u) |
           (std::bit_cast<uint32_t>(down(x)) == narrow ? 4u : 0u) |
           (std::bit_cast<uint64_t>(down(y)) == wide ? 8u : 0u);
  }();
  return kept;
}

}  // namespace halyard::vm
