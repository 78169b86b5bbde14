// The numbers of elementary functions: a double, or a type that builds code for one, with + - * / and these
// functions:
//   power_of_two(nearest)          2^n, where `nearest` is n + kNearest, for -1023 < n < 1024
//   exponent(x)                    the n with 2^n <= x < 2^(n + 1), for positive and finite x
//   bit(nearest, i, then, other)   bit i of n ? then : other
//   less(x, y, then, other)        x < y ? then : other; `other` if x or y is NaN
//   magnitude(x)                   x without its sign
//   copy_sign(x, y)                x with the sign of y
// No operation branches, so compiled code computes several numbers at once with vectors.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace halyard::vm::elementary {

// Added to a number below 2^51, rounds it to an integer, which is then in the low bits.
inline constexpr double kNearest = 0x1.8p52;

// Infinite as an f32. The product of an f32 other than 0 with this, and with this again, is infinite.
inline constexpr double kHuge = 0x1p1000;

inline double power_of_two(double nearest) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(nearest) + 1023) << 52);
}
inline double exponent(double x) {
  return static_cast<double>(static_cast<int64_t>(std::bit_cast<uint64_t>(x) >> 52) - 1023);
}
inline double bit(double nearest, unsigned i, double then, double other) {
  return std::bit_cast<uint64_t>(nearest) >> i & 1 ? then : other;
}
inline double less(double x, double y, double then, double other) { return x < y ? then : other; }
inline double magnitude(double x) { return std::fabs(x); }
inline double copy_sign(double x, double y) { return std::copysign(x, y); }

// The smaller of x and `most`; `most` if x is NaN.
template <typename Real>
Real at_most(const Real& x, double most) {
  return less(x, most, x, most);
}

// The number of this range that is next to x; `most` if x is NaN.
template <typename Real>
Real within(double least, const Real& x, double most) {
  return less(Real(least), x, at_most(x, most), least);
}

// A NaN, for x < 0.
template <typename Real>
Real invalid(const Real& x) {
  return x * kHuge * kHuge * 0.0;  // infinity times 0
}

// The `kCount` terms of the polynomial from the term `kFirst` on, divided by x^kFirst. powers[i] is x^(2^i).
// Halves are independent, so that the processor computes them at the same time.
template <size_t kFirst, size_t kCount, typename Real, size_t kSize>
Real terms(const std::array<double, kSize>& coefficients, const std::array<Real, 5>& powers) {
  if constexpr (kCount == 2) {
    return powers[0] * coefficients[kFirst + 1] + coefficients[kFirst];
  } else {
    constexpr size_t kHalf = std::bit_ceil(kCount) / 2;
    return powers[std::countr_zero(kHalf)] * terms<kFirst + kHalf, kCount - kHalf>(coefficients, powers) +
           terms<kFirst, kHalf>(coefficients, powers);
  }
}
template <typename Real, size_t kSize>
Real polynomial(const std::array<double, kSize>& coefficients, const Real& x) {
  static_assert(kSize % 2 == 0 && kSize <= 32);
  const Real x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  return terms<0, kSize>(coefficients, std::array<Real, 5>{x, x2, x4, x8, x8 * x8});
}

}  // namespace halyard::vm::elementary
