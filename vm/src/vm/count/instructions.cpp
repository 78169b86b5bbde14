// Results, bounds, float operations and element sizes by opcode.
#include "vm/count/instructions.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace halyard::vm {

Scalar result_of(Op op, Bank bank, const Operands<Scalar>& in, int64_t immediate) {
  using Compare = Scalar::Compare;
  const Scalar& a = in[0];
  const Scalar& b = in[1];
  const int64_t x = a.value;
  const int64_t y = b.value;
  const auto ux = bank == Bank::i32 ? uint64_t{static_cast<uint32_t>(x)} : static_cast<uint64_t>(x);
  const auto uy = bank == Bank::i32 ? uint64_t{static_cast<uint32_t>(y)} : static_cast<uint64_t>(y);
  const int bits = bank == Bank::i32 ? 32 : 64;
  const auto other = [&](auto value) { return scalar_of(static_cast<int64_t>(value), a, b); };
  const auto of_one = [&](auto value) {
    return scalar_of(static_cast<int64_t>(value), a, constant_scalar(0));
  };
  // The same number in another width, if it does not wrap along the way.
  const auto same_number = [&](int64_t value) { return value == x ? a : of_one(value); };
  const auto picked = [&](const Scalar& first, const Scalar& second) {
    if (!a.is_known) return unknown_scalar();
    const Scalar& taken = x != 0 ? first : second;
    return a.varies == 0 ? taken : scalar_of(taken.value, scalar_of(0, a, first), second);
  };
#define OF_BOTH(name)  \
  case Op::name##_i32: \
  case Op::name##_i64:
#define SIGNED_OF_BOTH(name) \
  case Op::name##_i32_s:     \
  case Op::name##_i64_s:
#define UNSIGNED_OF_BOTH(name) \
  case Op::name##_i32_u:       \
  case Op::name##_i64_u:
  switch (op) {
    OF_BOTH(const) return constant_scalar(immediate);
    case Op::const_i32_zero:
    case Op::const_i64_zero:
      return constant_scalar(0);
      OF_BOTH(add) return scalar_sum(a, b, false);
      OF_BOTH(sub) return scalar_sum(a, b, true);
      OF_BOTH(mul) return scalar_product(a, b);
      OF_BOTH(fma) return scalar_sum(scalar_product(a, b), in[2], false);
      SIGNED_OF_BOTH(div)
      return y == 0 || (y == -1 && x == INT64_MIN) ? unknown_scalar() : other(x / y);
      SIGNED_OF_BOTH(rem)
      return y == 0 || y == -1 ? (y == 0 ? unknown_scalar() : other(0)) : other(x % y);
      UNSIGNED_OF_BOTH(div) return uy == 0 ? unknown_scalar() : other(ux / uy);
      UNSIGNED_OF_BOTH(rem) return uy == 0 ? unknown_scalar() : other(ux % uy);
      OF_BOTH(not) return of_one(~x);
      OF_BOTH(and) return other(x & y);
      OF_BOTH(or) return other(x | y);
      OF_BOTH(xor) return other(x ^ y);
      OF_BOTH(shl) {
        const auto amount = static_cast<uint64_t>(y) & static_cast<uint64_t>(bits - 1);
        if (!b.is_constant() || amount > 62) return other(static_cast<uint64_t>(x) << amount);
        return scalar_product(a, constant_scalar(int64_t{1} << amount));
      }
      SIGNED_OF_BOTH(shr) return other(x >> (y & (bits - 1)));
      UNSIGNED_OF_BOTH(shr) return other(ux >> (y & (bits - 1)));
      SIGNED_OF_BOTH(min) return other(std::min(x, y));
      SIGNED_OF_BOTH(max) return other(std::max(x, y));
      UNSIGNED_OF_BOTH(min) return other(ux < uy ? x : y);
      UNSIGNED_OF_BOTH(max) return other(ux < uy ? y : x);
      OF_BOTH(abs) return x == INT64_MIN ? unknown_scalar() : of_one(x < 0 ? -x : x);
      OF_BOTH(ctlz) return of_one(std::countl_zero(ux) - (64 - bits));
    case Op::trunc_i32_i8:
    case Op::ext_i8_i32_u:
      return same_number(x & 0xFF);
    case Op::trunc_i32_i16:
    case Op::ext_i16_i32_u:
      return same_number(x & 0xFFFF);
    case Op::ext_i8_i32_s:
      return same_number(static_cast<int8_t>(x));
    case Op::ext_i16_i32_s:
      return same_number(static_cast<int16_t>(x));
    case Op::trunc_i64_i32:
    case Op::ext_i32_i64_s:
      return same_number(static_cast<int32_t>(x));
    case Op::ext_i32_i64_u:
      return same_number(static_cast<int64_t>(static_cast<uint32_t>(x)));
      OF_BOTH(cmp_eq) return scalar_comparison(Compare::equal, false, bits, a, b);
      OF_BOTH(cmp_ne) return scalar_comparison(Compare::unequal, false, bits, a, b);
      SIGNED_OF_BOTH(cmp_lt) return scalar_comparison(Compare::less, false, bits, a, b);
      UNSIGNED_OF_BOTH(cmp_lt) return scalar_comparison(Compare::less, true, bits, a, b);
      OF_BOTH(cmp_nz)
      return a.compare != Compare::none
                 ? a
                 : scalar_comparison(Compare::unequal, false, bits, a, constant_scalar(0));
      OF_BOTH(select) return picked(in[1], in[2]);
    default:
      return unknown_scalar();
  }
#undef OF_BOTH
#undef SIGNED_OF_BOTH
#undef UNSIGNED_OF_BOTH
}

Bounds bounds_of_result(Op op, const Operands<Bounds>& in) {
  const Bounds& a = in[0];
  const Bounds& b = in[1];
  const auto negated = [](const Bounds& bounds) { return Bounds{1 - bounds.high, 1 - bounds.low}; };
  switch (op) {
    case Op::add_i32:
    case Op::add_i64:
      return bounds_of_sum(a, b);
    case Op::sub_i32:
    case Op::sub_i64:
      return bounds_of_difference(a, b);
    case Op::mul_i32:
    case Op::mul_i64:
      return bounds_of_product(a, b);
    case Op::fma_i32:
    case Op::fma_i64:
      return bounds_of_sum(bounds_of_product(a, b), in[2]);
    case Op::div_i32_u:
    case Op::div_i64_u:
      return a.low < 0 ? Bounds() : bounds_of_quotient(a, b);
    case Op::div_i32_s:
    case Op::div_i64_s:
      return bounds_of_quotient(a, b);
    case Op::rem_i32_u:
    case Op::rem_i64_u:
      return a.low < 0 ? Bounds() : bounds_of_remainder(a, b);
    case Op::rem_i32_s:
    case Op::rem_i64_s:
      return bounds_of_remainder(a, b);
    case Op::and_i32:
    case Op::and_i64:
      return a.is_known() && a.low >= 0 && b.is_known() && b.low >= 0 ? Bounds{0, std::min(a.high, b.high)}
                                                                      : Bounds();
    case Op::min_i32_s:
    case Op::min_i64_s:
      if (!a.is_known() || !b.is_known()) return {};
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case Op::max_i32_s:
    case Op::max_i64_s:
      if (!a.is_known() || !b.is_known()) return {};
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case Op::select_i32:
    case Op::select_i64:
      if (a.is_constant()) return in[a.low != 0 ? 1 : 2];
      return bounds_of_either(b, in[2]);
    case Op::cmp_lt_i32_s:
    case Op::cmp_lt_i64_s:
      return bounds_of_less(a, b);
    case Op::cmp_eq_i32:
    case Op::cmp_eq_i64:
      return bounds_of_equal(a, b);
    case Op::cmp_ne_i32:
    case Op::cmp_ne_i64:
      return negated(bounds_of_equal(a, b));
    case Op::ext_i32_i64_s:
      return a;
    case Op::ext_i32_i64_u:
      return a.low < 0 ? Bounds() : a;
    case Op::trunc_i64_i32:
      return a.low < INT32_MIN || a.high > INT32_MAX ? Bounds() : a;
    default:
      return {};
  }
}

Bounds range_of_result(Op op, Bank bank) {
  switch (op) {
    case Op::trunc_i32_i8:
    case Op::ext_i8_i32_u:
      return {0, UINT8_MAX};
    case Op::trunc_i32_i16:
    case Op::ext_i16_i32_u:
      return {0, UINT16_MAX};
    case Op::ext_i8_i32_s:
      return {INT8_MIN, INT8_MAX};
    case Op::ext_i16_i32_s:
      return {INT16_MIN, INT16_MAX};
    case Op::ext_i32_i64_u:
      return {0, UINT32_MAX};
    default:
      return bank == Bank::i32 ? Bounds{INT32_MIN, INT32_MAX} : Bounds{INT64_MIN, INT64_MAX};
  }
}

uint64_t operations_of(Op op) {
#define OF_BOTH(name) Op::name##_f32, Op::name##_f64
  static constexpr Op kOne[] = {OF_BOTH(add),   OF_BOTH(sub),   OF_BOTH(mul),  OF_BOTH(div),   OF_BOTH(rem),
                                OF_BOTH(min),   OF_BOTH(max),   OF_BOTH(atan), OF_BOTH(atan2), OF_BOTH(cos),
                                OF_BOTH(sin),   OF_BOTH(exp),   OF_BOTH(exp2), OF_BOTH(expm1), OF_BOTH(log),
                                OF_BOTH(log10), OF_BOTH(log1p), OF_BOTH(log2), OF_BOTH(pow),   OF_BOTH(rsqrt),
                                OF_BOTH(sqrt),  OF_BOTH(tanh),  OF_BOTH(erf)};
#undef OF_BOTH
  if (op == Op::fma_f32 || op == Op::fma_f64) return 2;
  return std::ranges::find(kOne, op) != std::end(kOne) ? 1 : 0;
}

}  // namespace halyard::vm
