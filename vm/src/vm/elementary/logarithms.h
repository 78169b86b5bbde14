// log, log2, log10, log1p and pow: x is 2^n times a number near 1, whose logarithm is a function of
// s = (number - 1) / (number + 1): 2 s (1 + s^2 / 3 + s^4 / 5 + ...).
#pragma once

#include "vm/elementary/exponentials.h"

namespace halyard::vm::elementary {

// The polynomials interpolate log((1 + s) / (1 - s)) / s at zeros of a Chebyshev polynomial, as functions of
// s^2, for numbers from sqrt(1/2) to sqrt(2). Errors are below 3e-14, and 3e-18.
inline constexpr std::array kLogarithm = {0x1.fffffffffff12p+0, 0x1.55555556716dap-1, 0x1.9999962baa6d7p-2,
                                          0x1.24943845d454ep-2, 0x1.c620e12262e86p-3, 0x1.9193ad599876cp-3};
inline constexpr std::array kExactLogarithm = {
    0x1.0000000000000p+1, 0x1.55555555555aep-1, 0x1.999999997ae5dp-2, 0x1.2492494518370p-2,
    0x1.c71c4ffcc4142p-3, 0x1.74669a1004d6ep-3, 0x1.3999ab33ca2e3p-3, 0x1.2f4e5bc67e798p-3};

// x = 2^n * (1 + rest), for x > 0.
template <typename Real>
struct Factors {
  Real n, rest;
};
template <typename Real>
Factors<Real> factors(const Real& x) {
  constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
  const Real n = exponent(x * kSqrt2);
  return {n, x * power_of_two(Real(kNearest) - n) - 1.0};
}

// The logarithm to a base whose logarithms of 2 and of e are `of_2` and `of_e`.
template <typename Real, size_t kSize>
Real logarithm(const Factors<Real>& of, const std::array<double, kSize>& coefficients, double of_2,
               double of_e) {
  const Real s = of.rest / (of.rest + 2.0);
  return of.n * of_2 + s * polynomial(coefficients, s * s) * of_e;
}

// The logarithm of x: `found` if x is positive and finite. That of 0 is minus infinity, as an f32.
template <typename Real>
Real logarithm_of_any(const Real& x, const Real& found) {
  const Real of_positive = less(x, 0x1p128, found, x);
  return less(Real(0.0), x, of_positive, less(x, 0.0, invalid(x), -kHuge));
}

template <typename Real>
Real natural_logarithm(const Real& x) {
  return logarithm_of_any(x, logarithm(factors(x), kLogarithm, kLn2, 1.0));
}

template <typename Real>
Real binary_logarithm(const Real& x) {
  return logarithm_of_any(x, logarithm(factors(x), kLogarithm, 1.0, 0x1.71547652b82fep+0));
}

template <typename Real>
Real decimal_logarithm(const Real& x) {
  return logarithm_of_any(x, logarithm(factors(x), kLogarithm, 0x1.34413509f79ffp-2, 0x1.bcb7b1526e50ep-2));
}

// log(1 + x). The sum loses bits of a small x, so x itself is the rest if n is 0.
template <typename Real>
Real logarithm_of_one_plus(const Real& x) {
  const Real sum = x + 1.0;
  const Factors<Real> of_sum = factors(sum);
  const Real rest = less(magnitude(of_sum.n), 0.5, x, of_sum.rest);
  const Real found = logarithm(Factors<Real>{of_sum.n, rest}, kLogarithm, kLn2, 1.0);
  return logarithm_of_any(sum, copy_sign(found, x));
}

// x^y. If x or y is NaN, the caller decides.
template <typename Real>
Real power(const Real& x, const Real& y) {
  constexpr double kInfinite = 0x1p128;  // as an f32
  const Real base = magnitude(x);
  const Real of_positive =
      less(base, kInfinite, logarithm(factors(base), kExactLogarithm, 1.0, 0x1.71547652b82fep+0), kHuge);
  const Real of_base = less(Real(0.0), base, of_positive, -kHuge);
  // Below infinity, so that the product with the logarithm of 1 is 0.
  const Real found = binary_exponential(within(-0x1p140, y, 0x1p140) * of_base);
  // Numbers from 2^24 on are even.
  const Real limited = within(-0x1p24, y, 0x1p24);
  const Real nearest = limited + kNearest;
  const Real of_integer = bit(nearest, 0, copy_sign(found, x), found);
  const Real of_fraction = less(x, 0.0, less(Real(-kInfinite), x, invalid(x), found), found);
  return less(Real(0.0), magnitude(limited - (nearest - kNearest)), of_fraction, of_integer);
}

}  // namespace halyard::vm::elementary
