// Integers in slots, and integer instructions on expressions. Constants are computed exactly as a run does.
#include "analysis/registers.h"

#include <algorithm>
#include <array>
#include <bit>

#include "vm/count/instructions.h"

namespace halyard::analysis {

Expression Registers::read32(uint16_t reg) const {
  const Slot& slot = slots_[reg];
  switch (slot.form) {
    case Slot::Form::bits:
      return static_cast<int32_t>(slot.bits);
    case Slot::Form::whole:
    case Slot::Form::low:
      return slot.expression;
    default:
      return symbols_.fresh("a number that is not followed");
  }
}

Expression Registers::read64(uint16_t reg) const {
  const Slot& low = slots_[reg];
  const Slot& high = slots_[reg + 1];
  if (low.form == Slot::Form::bits && high.form == Slot::Form::bits)
    return static_cast<int64_t>(uint64_t{high.bits} << 32 | low.bits);
  if (low.form == Slot::Form::low && high.form == Slot::Form::high && low.expression == high.expression)
    return low.expression;
  return symbols_.fresh("a number that is not followed");
}

void Registers::write32(uint16_t reg, const Expression& value) {
  if (const auto constant = value.constant()) {
    slots_[reg] = {Slot::Form::bits, static_cast<uint32_t>(*constant), {}};
  } else {
    slots_[reg] = {Slot::Form::whole, 0, value};
  }
}

void Registers::write64(uint16_t reg, const Expression& value) {
  if (const auto constant = value.constant()) {
    const auto bits = static_cast<uint64_t>(*constant);
    slots_[reg] = {Slot::Form::bits, static_cast<uint32_t>(bits), {}};
    slots_[reg + 1] = {Slot::Form::bits, static_cast<uint32_t>(bits >> 32), {}};
  } else {
    slots_[reg] = {Slot::Form::low, 0, value};
    slots_[reg + 1] = {Slot::Form::high, 0, value};
  }
}

void Registers::write_unknown(bool is_wide, uint16_t reg) {
  slots_[reg] = {Slot::Form::unknown, 0, {}};
  if (is_wide) slots_[reg + 1] = {Slot::Form::unknown, 0, {}};
}

void Registers::move(uint16_t source, uint16_t destination) {
  if ((source & vm::kRefBit) != 0) {
    Ref moved = ref(source);
    set_ref(destination, std::move(moved));
  } else {
    slots_[destination] = slots_[source];
  }
}

namespace {

// 1 or 0 where the symbols allow an answer.
Expression outcome(Symbols& symbols, std::optional<bool> answer, std::string_view where) {
  if (answer) return *answer ? 1 : 0;
  return symbols.fresh(where, true);
}

std::optional<bool> is_less(Symbols& symbols, const Expression& a, const Expression& b) {
  const auto sign = symbols.compare(a, b);
  if (sign) return *sign < 0;
  if (symbols.is_at_least(a, b)) return false;
  return std::nullopt;
}

std::optional<bool> is_equal(Symbols& symbols, const Expression& a, const Expression& b) {
  const auto sign = symbols.compare(a, b);
  if (sign) return *sign == 0;
  return std::nullopt;
}

std::optional<bool> negated(std::optional<bool> answer) {
  if (answer) answer = !*answer;
  return answer;
}

}  // namespace

Expression result_of(Symbols& symbols, vm::Op op, vm::Bank bank, const std::vector<Expression>& in,
                     int64_t immediate, std::string_view where) {
  using vm::Op;
  if (std::ranges::all_of(in, [](const Expression& each) { return each.constant().has_value(); })) {
    vm::Operands<vm::Scalar> known;
    for (size_t i = 0; i < std::min(in.size(), known.size()); ++i)
      known[i] = vm::constant_scalar(*in[i].constant());
    const vm::Scalar result = vm::result_of(op, bank, known, immediate);
    return result.is_known ? Expression(result.value) : symbols.fresh(where);
  }
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
    OF_BOTH(add) return symbols.add(in[0], in[1]);
    OF_BOTH(sub) return symbols.subtract(in[0], in[1]);
    OF_BOTH(mul) return symbols.multiply(in[0], in[1]);
    OF_BOTH(fma) return symbols.add(symbols.multiply(in[0], in[1]), in[2]);
    SIGNED_OF_BOTH(div)
    UNSIGNED_OF_BOTH(div) return symbols.divide(in[0], in[1]);
    SIGNED_OF_BOTH(rem)
    UNSIGNED_OF_BOTH(rem) return symbols.remainder(in[0], in[1]);
    OF_BOTH(and) {
      for (const size_t i : {0, 1}) {
        const auto mask = in[i].constant();
        if (!mask) continue;
        if (*mask == 0) return 0;
        if (*mask < 0 && *mask != INT64_MIN && std::has_single_bit(static_cast<uint64_t>(-*mask)))
          return symbols.round_down(in[1 - i], -*mask);
        if (*mask > 0 && std::has_single_bit(static_cast<uint64_t>(*mask) + 1))
          return symbols.remainder(in[1 - i], *mask + 1);
      }
      return symbols.function("and", in, symbols.is_non_negative(in[0]) || symbols.is_non_negative(in[1]));
    }
    OF_BOTH(or) {
      for (const size_t i : {0, 1})
        if (in[i].is(0)) return in[1 - i];
      return symbols.function("or", in, symbols.is_non_negative(in[0]) && symbols.is_non_negative(in[1]));
    }
    OF_BOTH(shl) {
      const auto amount = in[1].constant();
      if (amount && *amount >= 0 && *amount < 62) return symbols.multiply(in[0], int64_t{1} << *amount);
      return symbols.fresh(where);
    }
    SIGNED_OF_BOTH(shr)
    UNSIGNED_OF_BOTH(shr) {
      const auto amount = in[1].constant();
      if (amount && *amount >= 0 && *amount < 62 && symbols.is_non_negative(in[0]))
        return symbols.divide(in[0], int64_t{1} << *amount);
      return symbols.fresh(where);
    }
    SIGNED_OF_BOTH(min)
    UNSIGNED_OF_BOTH(min) return symbols.smaller(in[0], in[1]);
    SIGNED_OF_BOTH(max)
    UNSIGNED_OF_BOTH(max) return symbols.larger(in[0], in[1]);
    OF_BOTH(abs) return symbols.is_non_negative(in[0]) ? in[0] : symbols.function("abs", in, true);
    OF_BOTH(cmp_eq) return outcome(symbols, is_equal(symbols, in[0], in[1]), where);
    OF_BOTH(cmp_ne) return outcome(symbols, negated(is_equal(symbols, in[0], in[1])), where);
    SIGNED_OF_BOTH(cmp_lt)
    UNSIGNED_OF_BOTH(cmp_lt) return outcome(symbols, is_less(symbols, in[0], in[1]), where);
    OF_BOTH(cmp_nz) return outcome(symbols, negated(is_equal(symbols, in[0], 0)), where);
    OF_BOTH(select) {
      if (const auto condition = in[0].constant()) return in[*condition != 0 ? 1 : 2];
      if (in[1] == in[2]) return in[1];
      return symbols.function("select", in, symbols.is_non_negative(in[1]) && symbols.is_non_negative(in[2]));
    }
    // The same number in another width: sizes are far from the limits of their types.
    case Op::trunc_i64_i32:
    case Op::ext_i32_i64_s:
      return in[0];
    case Op::ext_i32_i64_u:
      return symbols.is_non_negative(in[0]) ? in[0] : symbols.function("u32", in, true);
    default:
      return symbols.fresh(where);
  }
#undef OF_BOTH
#undef SIGNED_OF_BOTH
#undef UNSIGNED_OF_BOTH
}

}  // namespace halyard::analysis
