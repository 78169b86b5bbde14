// rem: x - n * y, where n is the integer next to x / y, or the even one of two. The result is exact.
#pragma once

#include <type_traits>

#include "vm/elementary/real.h"

namespace halyard::vm::elementary {

// If x or y is NaN, the caller decides.
template <typename Real>
Real remainder(const Real& x, const Real& y) {
  // A quotient of two f32 is below 2^277. Each step takes up to 28 bits of it, so that the product with the
  // 24 bits of y is exact.
  constexpr double kStep = 0x1p28;
  constexpr int kSteps = 10;
  const Real size = at_most(magnitude(y), 0x1p500);  // of an infinite y, too
  Real rest = x;
  double scale = 1;
  for (int i = 1; i < kSteps; ++i) scale *= kStep;
  for (int i = 0; i < kSteps; ++i, scale /= kStep) {
    const Real multiple = size * scale;
    if constexpr (std::is_same_v<Real, double>)
      if (magnitude(rest) < multiple * 0.5) continue;
    rest = rest - (((rest / multiple) + kNearest) - kNearest) * multiple;
  }
  // The quotient was rounded, so that it may have been on the wrong side of a half.
  const Real half = size * 0.5;
  const Real found = less(half, magnitude(rest), rest - copy_sign(size, rest), rest);
  const Real signed_zero = less(Real(0.0), magnitude(found), found, copy_sign(Real(0.0), x));
  const Real finite = less(magnitude(x), 0x1p128, signed_zero, invalid(x));
  return less(Real(0.0), size, finite, invalid(magnitude(x) + 1.0));
}

}  // namespace halyard::vm::elementary
