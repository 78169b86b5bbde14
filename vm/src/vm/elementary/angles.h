// sin, cos, atan and atan2.
#pragma once

#include <type_traits>

#include "vm/elementary/real.h"

namespace halyard::vm::elementary {

inline constexpr double kQuarterTurn = 0x1.921fb54442d18p+0;  // pi / 2

// An angle of (n + rest) quarter turns, with `rest` from -1/2 to 1/2. `nearest` is n + kNearest, and n is
// right modulo 4.
template <typename Real>
struct Turn {
  Real nearest, rest;
};

// 2 / pi in three parts, for angles from `from` to 2^24 times as much. The first two have so few bits that
// their products with an f32 are exact. Bits whose products are multiples of 4 are left out.
struct TurnParts {
  double from;
  std::array<double, 3> parts;
};
inline constexpr std::array kTurnParts = {
    TurnParts{0, {0x1.45f306cp-1, 0x1.c9c8828p-29, 0x1.29fc2757d1f53p-56}},
    TurnParts{0x1p24, {0x1.45f306cp-1, 0x1.c9c882p-29, 0x1.4a7f09d5f47d5p-54}},
    TurnParts{0x1p48, {0x1.6e4e44p-24, 0x1.529fc2p-52, 0x1.d5f47d4d37703p-78}},
    TurnParts{0x1p72, {0x1.529fc2p-52, 0x1.d5f47cp-78, 0x1.4d377036d8a56p-102}},
    TurnParts{0x1p96, {0x1.3abe8fp-75, 0x1.534ddcp-100, 0x1.b6c52b3278872p-129}},
    TurnParts{0x1p120, {0x1.f534ddcp-96, 0x1.b6c52p-129, 0x1.664f10e4107f9p-150}}};

template <typename Real>
Turn<Real> turn(const Real& x) {
  const Real size = magnitude(x);
  const auto product = [&](size_t part) {
    Real factor = kTurnParts[0].parts[part];
    for (size_t i = 1; i < kTurnParts.size(); ++i) {
      if constexpr (std::is_same_v<Real, double>)
        if (size < kTurnParts[i].from) break;
      factor = less(size, kTurnParts[i].from, factor, kTurnParts[i].parts[part]);
    }
    return x * factor;
  };
  const auto rounded = [](const Real& number) { return (number + kNearest) - kNearest; };
  // Without the last part, all sums are exact.
  const Real first = product(0), second = product(1);
  const Real first_turns = rounded(first), second_turns = rounded(second);
  const Real rest = (first - first_turns) + (second - second_turns);
  const Real last_turns = rounded(rest);
  return {first_turns + second_turns + last_turns + kNearest, (rest - last_turns) + product(2)};
}

// The sine. The polynomials interpolate sin(rest pi / 2) / rest and cos(rest pi / 2) at the zeros of a
// Chebyshev polynomial, as functions of the square. Errors are below 8e-14.
template <typename Real>
Real sine(const Turn<Real>& of) {
  constexpr std::array kSine = {0x1.921fb54442cfap+0,  -0x1.4abbce62579e4p-1, 0x1.466bc6711ee43p-4,
                                -0x1.32d2c6409ccf4p-8, 0x1.5071cbae70197p-13, -0x1.dd535740920e1p-19};
  constexpr std::array kCosine = {0x1.ffffffffffe09p-1,  -0x1.3bd3cc9bd2b15p+0, 0x1.03c1f074d450ep-2,
                                  -0x1.55d3ba27a6b2fp-6, 0x1.e1e7c767304a9p-11, -0x1.a0ece0527e990p-16};
  const Real square = of.rest * of.rest;
  const Real found = bit(of.nearest, 0, polynomial(kCosine, square), of.rest * polynomial(kSine, square));
  // Only 0 quarter turns have the sine 0. A product with -1 would change the sign of a NaN if a compiler
  // makes it a negation.
  return bit(of.nearest, 1, Real(0.0) - found, found);
}

template <typename Real>
Real sine(const Real& x) {
  return sine(turn(x));
}

template <typename Real>
Real cosine(const Real& x) {
  const Turn<Real> of = turn(x);
  return sine(Turn<Real>{of.nearest + 1.0, of.rest});
}

// The angle of the point (x, y), from 0 to a quarter turn, for positive coordinates. atan(z) / z for z from 0
// to 1 is interpolated as a function of z^2. The error is below 2e-12.
template <typename Real>
Real acute_angle(const Real& y, const Real& x) {
  constexpr std::array kTerms = {0x1.bda7a85bd6c5ap-1,   -0x1.a1494c1a01ae7p-4,  0x1.55a3009e66fd2p-6,
                                 -0x1.49b3e2ba7d074p-8,  0x1.58df9ba8b1269p-10,  -0x1.7a848da1c487fp-12,
                                 0x1.acee51b733d3cp-14,  -0x1.f1628d206b3e6p-16, 0x1.26829ec5c1f9cp-17,
                                 -0x1.6034b8614f1fap-19, 0x1.8f8cc9c22553bp-21,  -0x1.e6679df61e550p-23,
                                 0x1.c2c3790b1b4f1p-24,  -0x1.178d6baea92b4p-25};
  const Real z = less(x, y, x, y) / less(x, y, y, x);
  const Real found = z * polynomial(kTerms, z * z * 2.0 - 1.0);
  return less(x, y, Real(kQuarterTurn) - found, found);
}

template <typename Real>
Real arctangent(const Real& x) {
  return copy_sign(acute_angle(magnitude(x), Real(1.0)), x);
}

// The angle of the point (x, y). If x or y is NaN, the caller decides.
template <typename Real>
Real arctangent_of_point(const Real& y, const Real& x) {
  // Infinite coordinates are equally large, and far larger than finite ones. The origin is a point of the
  // axis.
  constexpr double kInfinite = 0x1p500, kSmall = 0x1p-500;
  const auto coordinate = [](const Real& of) {
    return less(magnitude(of), 0x1p128, magnitude(of), kInfinite);
  };
  const Real found = acute_angle(coordinate(y), coordinate(x) + kSmall);
  return copy_sign(less(copy_sign(Real(1.0), x), 0.0, Real(2 * kQuarterTurn) - found, found), y);
}

}  // namespace halyard::vm::elementary
