// Scalar: an integer register of a counted function. Its value is that of the first iteration of each loop
// that is being counted; slopes tell how it changes from iteration to iteration.
#pragma once

#include <array>
#include <cstdint>

namespace halyard::vm {

// Dimensions: the three of the grid, then the loops that are being counted, from the outermost.
inline constexpr int kMaxDimensions = 16;

// The least and the greatest value in all iterations. Unknown if `low` is above `high`.
struct Bounds {
  int64_t low = 1;
  int64_t high = 0;

  bool is_known() const { return low <= high; }
  bool is_constant() const { return low == high; }
};

struct Scalar {
  enum class Compare : uint8_t { none, less, equal, unequal };

  bool is_known = false;
  bool is_linear = true;  // `slope` describes all changes
  // In an iteration, the value or one that it was computed from may not fit its register, so it may be
  // another one than `slope` and `bounds` tell. Found only for KernelArguments::finds_overwritten.
  bool may_wrap = false;
  // The value is 1 if and only if `difference` is below, equal to or unequal to 0.
  Compare compare = Compare::none;
  uint32_t varies = 0;  // bit d: changes along dimension d
  int64_t value = 0;
  int64_t difference = 0;
  // Per iteration; of `difference` if `compare` is set.
  std::array<int64_t, kMaxDimensions> slope = {};
  Bounds bounds = {};  // if it is not linear or a comparison
  // While the registers are found that a loop increments: the register with the value at the head of the loop
  // (-1: none), and the sum of the constants that were added since.
  int32_t origin = -1;
  int64_t added = 0;
  // If it is not linear: the number of the Form that its counter keeps for it; -1: none.
  int32_t form = -1;

  bool is_constant() const { return is_known && varies == 0; }
};

inline Scalar unknown_scalar() { return {}; }
inline Scalar constant_scalar(int64_t value) {
  Scalar scalar;
  scalar.is_known = true;
  scalar.value = value;
  return scalar;
}

// The results of operations on scalars.
Scalar scalar_sum(const Scalar& a, const Scalar& b, bool subtract);
Scalar scalar_product(const Scalar& a, const Scalar& b);
// Any other function of the operands, with this value.
Scalar scalar_of(int64_t value, const Scalar& a, const Scalar& b);
// A comparison of a and b of registers with `bits` bits.
Scalar scalar_comparison(Scalar::Compare compare, bool is_unsigned, int bits, const Scalar& a,
                         const Scalar& b);

// The values in all iterations on trial. `trips`: of each dimension; 0: not known yet.
Bounds bounds_of(const Scalar& scalar, const std::array<uint64_t, kMaxDimensions>& trips);
// The bounds of results from those of the operands.
Bounds bounds_of_sum(const Bounds& a, const Bounds& b);
Bounds bounds_of_difference(const Bounds& a, const Bounds& b);
Bounds bounds_of_product(const Bounds& a, const Bounds& b);
Bounds bounds_of_quotient(const Bounds& a, const Bounds& b);
Bounds bounds_of_remainder(const Bounds& a, const Bounds& b);
Bounds bounds_of_less(const Bounds& a, const Bounds& b);
Bounds bounds_of_equal(const Bounds& a, const Bounds& b);
Bounds bounds_of_either(const Bounds& a, const Bounds& b);

}  // namespace halyard::vm
