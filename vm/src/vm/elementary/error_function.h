// erf.
#pragma once

#include "vm/elementary/real.h"

namespace halyard::vm::elementary {

// erf(x) / x is a function of x^2, interpolated at the 20 zeros of a Chebyshev polynomial for x^2 from 0
// to 16. Its error is below 8e-11. From 4 on, the result is 1 as an f32.
template <typename Real>
Real error_function(const Real& x) {
  constexpr std::array kTerms = {
      0x1.6a0407813baa1p-2,  -0x1.69a0ccd9f73c6p-3,  0x1.0dabafa9f3999p-3,  -0x1.b92e963066177p-4,
      0x1.717ed256b0ed8p-4,  -0x1.3215ca750c8f1p-4,  0x1.ea9c222c23e0ap-5,  -0x1.76e9cff463069p-5,
      0x1.0eba285ccfb01p-5,  -0x1.7022a9f4c2199p-6,  0x1.d7c388dcb1e6ap-7,  -0x1.1a8964f743ccap-7,
      0x1.3724434f14cc9p-8,  -0x1.4d37190a4666bp-9,  0x1.78c188750ccccp-10, -0x1.5b3067883332ep-11,
      0x1.4cf890633333cp-13, -0x1.462a048ccccd8p-14, 0x1.97ebb1e666666p-14, -0x1.2a58e76666666p-15};
  const Real y = at_most(magnitude(x), 4.0);
  return copy_sign(y * polynomial(kTerms, y * y * 0.125 - 1.0), x);
}

}  // namespace halyard::vm::elementary
