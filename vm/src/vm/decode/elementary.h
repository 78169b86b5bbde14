// exp, tanh and erf of f32, by polynomials of f64: the same bits on every processor, in the interpreter and
// in compiled code, which computes them with vectors. Errors are below 0.501 units in the last place.
//
// The templates take a double, or a type that builds code for one, with + - * / and these functions:
//   power_of_two(nearest)     2^n, where `nearest` is n + kNearest, for -1023 < n < 1024
//   less(x, y, then, other)   x < y ? then : other; `other` if x or y is NaN
//   magnitude(x)              x without its sign
//   copy_sign(x, y)           x with the sign of y
//
// Products and sums must not be contracted to fused operations (-ffp-contract=off).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace halyard::vm {

namespace elementary {

// Added to a number below 2^51, rounds it to an integer, which is then in the low bits.
inline constexpr double kNearest = 0x1.8p52;

inline double power_of_two(double nearest) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(nearest) + 1023) << 52);
}
inline double less(double x, double y, double then, double other) { return x < y ? then : other; }
inline double magnitude(double x) { return std::fabs(x); }
inline double copy_sign(double x, double y) { return std::copysign(x, y); }

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
Real polynomial(const std::array<double, kSize>& coefficients, Real x) {
  static_assert(kSize % 2 == 0 && kSize <= 32);
  const Real x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  return terms<0, kSize>(coefficients, std::array<Real, 5>{x, x2, x4, x8, x8 * x8});
}

// x = n * ln 2 + rest. `nearest` is n + kNearest.
template <typename Real>
struct Split {
  Real nearest, rest;
};
template <typename Real>
Split<Real> split(Real x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0, kLn2 = 0x1.62e42fefa39efp-1;
  const Real nearest = x * kLog2E + kNearest;
  return {nearest, x - (nearest - kNearest) * kLn2};
}

// The smaller of x and `most`; `most` if x is NaN.
template <typename Real>
Real at_most(Real x, double most) {
  return less(x, most, x, most);
}

template <typename Real>
Real exponential(Real x) {
  // 1 / i!. The next term is below 7e-12.
  constexpr std::array kTerms = {1.0,       1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,
                                 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880};
  // Outside of these limits the result is infinite or 0 as an f32.
  const Split<Real> parts = split(less(Real(-110.0), x, at_most(x, 90.0), -110.0));
  return polynomial(kTerms, parts.rest) * power_of_two(parts.nearest);
}

// From e^(2x) - 1, which loses no bits where x is near 0.
template <typename Real>
Real hyperbolic_tangent(Real x) {
  // 1 / (i + 1)!
  constexpr std::array kTerms = {1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,     1.0 / 120,
                                 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};
  const Split<Real> parts = split(at_most(magnitude(x) * 2.0, 40.0));
  const Real scale = power_of_two(parts.nearest);
  const Real less_one = scale * (parts.rest * polynomial(kTerms, parts.rest)) + (scale - 1.0);
  return copy_sign(less_one / (less_one + 2.0), x);
}

// erf(x) / x is a function of x^2, interpolated at the 20 zeros of a Chebyshev polynomial for x^2 from 0
// to 16. Its error is below 8e-11. From 4 on, the result is 1 as an f32.
template <typename Real>
Real error_function(Real x) {
  constexpr std::array kTerms = {
      0x1.6a0407813baa1p-2,  -0x1.69a0ccd9f73c6p-3,  0x1.0dabafa9f3999p-3,  -0x1.b92e963066177p-4,
      0x1.717ed256b0ed8p-4,  -0x1.3215ca750c8f1p-4,  0x1.ea9c222c23e0ap-5,  -0x1.76e9cff463069p-5,
      0x1.0eba285ccfb01p-5,  -0x1.7022a9f4c2199p-6,  0x1.d7c388dcb1e6ap-7,  -0x1.1a8964f743ccap-7,
      0x1.3724434f14cc9p-8,  -0x1.4d37190a4666bp-9,  0x1.78c188750ccccp-10, -0x1.5b3067883332ep-11,
      0x1.4cf890633333cp-13, -0x1.462a048ccccd8p-14, 0x1.97ebb1e666666p-14, -0x1.2a58e76666666p-15};
  const Real y = at_most(magnitude(x), 4.0);
  return copy_sign(y * polynomial(kTerms, y * y * 0.125 - 1.0), x);
}

}  // namespace elementary

// A NaN becomes quiet.
float exponential(float x) noexcept;
float hyperbolic_tangent(float x) noexcept;
float error_function(float x) noexcept;
inline double exponential(double x) noexcept { return std::exp(x); }
inline double hyperbolic_tangent(double x) noexcept { return std::tanh(x); }
inline double error_function(double x) noexcept { return std::erf(x); }

}  // namespace halyard::vm
