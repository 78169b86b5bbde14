#include "plan/decided.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;

namespace {

struct Bounds {
  uint64_t low = 0;
  uint64_t high = 0;
};

// The least and the greatest number of a value without a sign.
Bounds unsigned_bounds(const Value& value) {
  const uint64_t all = value.bank == Bank::i32 ? UINT32_MAX : UINT64_MAX;
  if (value.range.low < 0 && value.range.high >= 0) return {0, all};
  return {static_cast<uint64_t>(value.range.low) & all, static_cast<uint64_t>(value.range.high) & all};
}

// Whether a < b, if the ranges of the values decide it.
std::optional<bool> is_less(const Value& a, const Value& b, bool is_signed) {
  if (a.same == b.same) return false;
  if (is_signed) {
    if (a.range.high < b.range.low) return true;
    if (a.range.low >= b.range.high) return false;
    return std::nullopt;
  }
  const Bounds x = unsigned_bounds(a);
  const Bounds y = unsigned_bounds(b);
  if (x.high < y.low) return true;
  if (x.low >= y.high) return false;
  return std::nullopt;
}

// Whether a == b, in the same way.
std::optional<bool> is_equal(const Value& a, const Value& b) {
  if (a.same == b.same) return true;
  if (a.range.high < b.range.low || b.range.high < a.range.low) return false;
  return std::nullopt;
}

}  // namespace

std::optional<ValueId> decided(Values& values, Op op, const std::array<ValueId, 3>& operands) {
  const auto less = [&](size_t i, size_t n) {
    const bool is_signed = vm::info(op).mnemonic().ends_with(".s");
    return is_less(values[operands[i]], values[operands[n]], is_signed);
  };
  // The first operand unless less(i, n) is possible, or else the second unless less(n, i) is.
  const auto chosen = [&](size_t i, size_t n) -> std::optional<ValueId> {
    if (less(i, n) == false) return operands[0];
    if (less(n, i) == false) return operands[1];
    return std::nullopt;
  };
  std::optional<bool> result;
  switch (op) {
    case Op::cmp_lt_i32_s:
    case Op::cmp_lt_i32_u:
    case Op::cmp_lt_i64_s:
    case Op::cmp_lt_i64_u:
      result = less(0, 1);
      break;
    case Op::cmp_eq_i32:
    case Op::cmp_eq_i64:
      result = is_equal(values[operands[0]], values[operands[1]]);
      break;
    case Op::cmp_ne_i32:
    case Op::cmp_ne_i64:
      result = is_equal(values[operands[0]], values[operands[1]]);
      if (result) result = !*result;
      break;
    case Op::min_i32_s:
    case Op::min_i32_u:
    case Op::min_i64_s:
    case Op::min_i64_u:
      return chosen(1, 0);
    case Op::max_i32_s:
    case Op::max_i32_u:
    case Op::max_i64_s:
    case Op::max_i64_u:
      return chosen(0, 1);
    default:
      break;
  }
  if (!result) return std::nullopt;
  return values.constant(Bank::i32, *result ? 1 : 0);
}

}  // namespace halyard::aot
