// exp, exp2, expm1 and tanh: e^x is 2^n times e^rest, where `rest` lies within half of ln 2 around 0.
#pragma once

#include "vm/elementary/real.h"

namespace halyard::vm::elementary {

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// x = n * ln 2 + rest. `nearest` is n + kNearest.
template <typename Real>
struct Split {
  Real nearest, rest;
};
template <typename Real>
Split<Real> split(const Real& x) {
  constexpr double kLog2E = 0x1.71547652b82fep+0;
  const Real nearest = x * kLog2E + kNearest;
  return {nearest, x - (nearest - kNearest) * kLn2};
}

template <typename Real>
Real exponential(const Split<Real>& parts) {
  // 1 / i!. The next term is below 7e-12.
  constexpr std::array kTerms = {1.0,       1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,
                                 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880};
  return polynomial(kTerms, parts.rest) * power_of_two(parts.nearest);
}

// Without a loss of bits where x is near 0.
template <typename Real>
Real exponential_less_one(const Split<Real>& parts) {
  // 1 / (i + 1)!
  constexpr std::array kTerms = {1.0,       1.0 / 2,    1.0 / 6,     1.0 / 24,     1.0 / 120,
                                 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800};
  const Real scale = power_of_two(parts.nearest);
  return scale * (parts.rest * polynomial(kTerms, parts.rest)) + (scale - 1.0);
}

// Outside of the limits of these functions, results are infinite as an f32, or those of the limit.

template <typename Real>
Real exponential(const Real& x) {
  return exponential(split(within(-110.0, x, 90.0)));
}

template <typename Real>
Real binary_exponential(const Real& x) {
  const Real limited = within(-160.0, x, 130.0);
  const Real nearest = limited + kNearest;
  return exponential(Split<Real>{nearest, (limited - (nearest - kNearest)) * kLn2});
}

template <typename Real>
Real exponential_less_one(const Real& x) {
  return copy_sign(exponential_less_one(split(within(-60.0, x, 90.0))), x);
}

// From e^(2x) - 1.
template <typename Real>
Real hyperbolic_tangent(const Real& x) {
  const Real less_one = exponential_less_one(split(at_most(magnitude(x) * 2.0, 40.0)));
  return copy_sign(less_one / (less_one + 2.0), x);
}

}  // namespace halyard::vm::elementary
