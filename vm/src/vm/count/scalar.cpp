// Linear forms of integer registers.
#include "vm/count/scalar.h"

#include <algorithm>

namespace halyard::vm {

namespace {

int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapping_multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// Values and slopes within these bounds do not wrap before the comparison changes.
bool is_within(const Scalar& scalar, int64_t bound) {
  const auto fits = [&](int64_t value) { return value > -bound && value < bound; };
  if (!fits(scalar.value)) return false;
  for (const int64_t slope : scalar.slope)
    if (!fits(slope)) return false;
  return true;
}

bool is_plain(const Scalar& scalar) { return scalar.is_linear && scalar.compare == Scalar::Compare::none; }

// Known if it does not wrap.
Bounds bounds_between(__int128 low, __int128 high) {
  if (low < INT64_MIN || high > INT64_MAX) return {};
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

}  // namespace

Bounds bounds_of_sum(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {};
  return bounds_between(__int128{a.low} + b.low, __int128{a.high} + b.high);
}

Bounds bounds_of_difference(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {};
  return bounds_between(__int128{a.low} - b.high, __int128{a.high} - b.low);
}

Bounds bounds_of_product(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {};
  const auto [low, high] = std::minmax({__int128{a.low} * b.low, __int128{a.low} * b.high,
                                        __int128{a.high} * b.low, __int128{a.high} * b.high});
  return bounds_between(low, high);
}

Bounds bounds_of_quotient(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_constant() || b.low <= 0) return {};
  return {a.low / b.low, a.high / b.low};
}

Bounds bounds_of_remainder(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_constant() || b.low <= 0) return {};
  const int64_t last = b.low - 1;
  return {a.low >= 0 ? 0 : std::max(a.low, -last), a.high <= 0 ? 0 : std::min(a.high, last)};
}

Bounds bounds_of_less(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {0, 1};
  if (a.high < b.low) return {1, 1};
  return a.low >= b.high ? Bounds{0, 0} : Bounds{0, 1};
}

Bounds bounds_of_equal(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {0, 1};
  if (a.high < b.low || b.high < a.low) return {0, 0};
  return a.is_constant() && b.is_constant() ? Bounds{1, 1} : Bounds{0, 1};
}

Bounds bounds_of_either(const Bounds& a, const Bounds& b) {
  if (!a.is_known() || !b.is_known()) return {};
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Scalar scalar_of(int64_t value, const Scalar& a, const Scalar& b) {
  if (!a.is_known || !b.is_known) return unknown_scalar();
  Scalar result = constant_scalar(value);
  result.varies = a.varies | b.varies;
  result.may_wrap = a.may_wrap || b.may_wrap;
  result.is_linear = result.varies == 0;
  return result;
}

Scalar scalar_sum(const Scalar& a, const Scalar& b, bool subtract) {
  const int64_t sign = subtract ? -1 : 1;
  Scalar result = scalar_of(wrapping_add(a.value, wrapping_multiply(sign, b.value)), a, b);
  if (!result.is_known) return result;
  if (is_plain(a) && is_plain(b)) {
    result.is_linear = true;
    for (int d = 0; d < kMaxDimensions; ++d)
      result.slope[d] = wrapping_add(a.slope[d], wrapping_multiply(sign, b.slope[d]));
  }
  const bool keeps_left = a.origin >= 0 && b.is_constant();
  const bool keeps_right = !subtract && b.origin >= 0 && a.is_constant();
  if (keeps_left || keeps_right) {
    result.origin = keeps_left ? a.origin : b.origin;
    result.added =
        keeps_left ? wrapping_add(a.added, wrapping_multiply(sign, b.value)) : wrapping_add(b.added, a.value);
  }
  return result;
}

Scalar scalar_product(const Scalar& a, const Scalar& b) {
  Scalar result = scalar_of(wrapping_multiply(a.value, b.value), a, b);
  if (!result.is_known || (a.varies != 0 && b.varies != 0) || !is_plain(a) || !is_plain(b)) return result;
  const Scalar& linear = a.varies != 0 ? a : b;
  const int64_t factor = a.varies != 0 ? b.value : a.value;
  result.is_linear = true;
  for (int d = 0; d < kMaxDimensions; ++d) result.slope[d] = wrapping_multiply(linear.slope[d], factor);
  return result;
}

Scalar scalar_comparison(Scalar::Compare compare, bool is_unsigned, int bits, const Scalar& a,
                         const Scalar& b) {
  using Compare = Scalar::Compare;
  const auto left = static_cast<uint64_t>(a.value);
  const auto right = static_cast<uint64_t>(b.value);
  const bool is_less = is_unsigned ? left < right : a.value < b.value;
  const bool is_equal = a.value == b.value;
  const bool outcome =
      compare == Compare::less ? is_less : (compare == Compare::equal ? is_equal : !is_equal);
  Scalar result = scalar_of(outcome ? 1 : 0, a, b);
  if (!result.is_known || result.varies == 0 || !is_plain(a) || !is_plain(b)) return result;
  const int64_t bound = int64_t{1} << (bits - 2);
  if (!is_within(a, bound) || !is_within(b, bound)) return result;
  if (is_unsigned && compare == Compare::less) {
    // Signed as long as neither value becomes negative.
    if (a.value < 0 || b.value < 0) return result;
    for (int d = 0; d < kMaxDimensions; ++d)
      if (a.slope[d] < 0 || b.slope[d] != 0) return result;
  }
  result.compare = compare;
  result.difference = a.value - b.value;
  result.is_linear = true;
  for (int d = 0; d < kMaxDimensions; ++d) result.slope[d] = a.slope[d] - b.slope[d];
  return result;
}

Bounds bounds_of(const Scalar& scalar, const std::array<uint64_t, kMaxDimensions>& trips) {
  if (!scalar.is_known) return {};
  if (!scalar.is_linear || scalar.compare != Scalar::Compare::none) return scalar.bounds;
  Bounds bounds = {scalar.value, scalar.value};
  for (size_t d = 0; d < kMaxDimensions; ++d) {
    if (!(scalar.varies >> d & 1)) continue;
    if (trips[d] == 0) return {};  // its exit test comes later
    const Bounds last = {0, static_cast<int64_t>(std::min<uint64_t>(trips[d] - 1, INT64_MAX))};
    bounds = bounds_of_sum(bounds, bounds_of_product(last, {scalar.slope[d], scalar.slope[d]}));
  }
  return bounds;
}

}  // namespace halyard::vm
