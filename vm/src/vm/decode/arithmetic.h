// The results of arithmetic instructions, defined for all operands. If C++ leaves a result undefined, these
// functions return the result of x86-64. Specified by isa.md, sections 5.1 and 5.2.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace halyard::vm {

// MIN / -1 wraps to MIN, with remainder 0. The divisor must not be 0.
template <typename Signed>
Signed divide(Signed lhs, Signed rhs) {
  using Unsigned = std::make_unsigned_t<Signed>;
  if (rhs == -1) return static_cast<Signed>(Unsigned{0} - static_cast<Unsigned>(lhs));
  return lhs / rhs;
}

template <typename Signed>
Signed remainder_of(Signed lhs, Signed rhs) {
  return rhs == -1 ? 0 : lhs % rhs;
}

template <typename Signed>
Signed absolute(Signed value) {
  using Unsigned = std::make_unsigned_t<Signed>;
  return value < 0 ? static_cast<Signed>(Unsigned{0} - static_cast<Unsigned>(value)) : value;
}

// Keeps the compiler from contracting the operation that computed `value` with the next one to an fma, which
// would round once instead of twice.
template <typename Float>
Float rounded(Float value) {
#if defined(__x86_64__)
  asm("" : "+x"(value));
#elif defined(__aarch64__)
  asm("" : "+w"(value));
#else
  asm("" : "+m"(value));
#endif
  return value;
}

template <typename Float>
Float multiply_add(Float a, Float b, Float c) {
  return rounded(a * b) + c;
}

// Rounds halves to even, except that -0.5 becomes +0.
template <typename Float>
Float round_even(Float value) {
  const Float away = std::round(value);
  if (std::fabs(value - away) != Float(0.5) || std::fmod(away, Float(2)) == 0) return away;
  return away > 0 ? away - 1 : away + 1;
}

// If an operand is NaN, the result is the left operand.
template <typename Float>
Float minimum(Float lhs, Float rhs) {
  return rhs < lhs ? rhs : lhs;
}
template <typename Float>
Float maximum(Float lhs, Float rhs) {
  return lhs < rhs ? rhs : lhs;
}

// Rounds halves away from zero; MIN if the result does not fit.
template <typename Float>
int64_t to_i64(Float value) {
  constexpr Float kLimit = Float(9223372036854775808.0);
  const Float away = std::round(value);
  return away >= -kLimit && away < kLimit ? static_cast<int64_t>(away) : std::numeric_limits<int64_t>::min();
}

// cast.f32.ui64: negative values wrap; values too large give 2^63, or 0 from 2^64 on.
inline uint64_t to_u64(float value) {
  constexpr float kLimit = 9223372036854775808.0f;
  constexpr uint64_t kTopBit = uint64_t{1} << 63;
  const float away = std::round(value);
  if (!(away >= kLimit)) return static_cast<uint64_t>(to_i64(value));
  return away - kLimit < kLimit ? static_cast<uint64_t>(away - kLimit) ^ kTopBit : 0;
}

inline uint32_t to_i32(float value) { return static_cast<uint32_t>(to_i64(value)); }

}  // namespace halyard::vm
