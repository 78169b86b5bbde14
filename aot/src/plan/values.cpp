#include "plan/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "aot/c_text.h"

namespace halyard::aot {

using vm::Bank;
using vm::Op;

namespace {

using Wide = __int128;

// A range that does not fit its type may wrap, so it has all values.
Range fitted(Wide low, Wide high, int64_t step, Bank bank) {
  const Range all = Range::of(bank);
  if (low < all.low || high > all.high) return all;
  return {static_cast<int64_t>(low), static_cast<int64_t>(high), low == high ? 0 : step};
}

int64_t gcd(int64_t a, int64_t b) { return std::gcd(a, b); }

Range product(const Range& a, const Range& b, Bank bank) {
  const Wide corners[] = {Wide{a.low} * b.low, Wide{a.low} * b.last(), Wide{a.last()} * b.low,
                          Wide{a.last()} * b.last()};
  int64_t step = 1;
  const auto scaled = [](int64_t of, int64_t by) {
    const Wide wide = Wide{of} * by;
    return wide > INT32_MAX || wide < -INT32_MAX ? int64_t{1} : static_cast<int64_t>(wide < 0 ? -wide : wide);
  };
  if (a.step == 0) step = scaled(b.step, a.low);
  if (b.step == 0) step = scaled(a.step, b.low);
  return fitted(*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4), step, bank);
}

Range sum(const Range& a, const Range& b, Bank bank) {
  return fitted(Wide{a.low} + b.low, Wide{a.high} + b.high, gcd(a.step, b.step), bank);
}

}  // namespace

Range Range::of(Bank bank) {
  if (bank == Bank::i32) return {INT32_MIN, INT32_MAX, 1};
  return {};
}

int64_t Range::last() const {
  if (step <= 1) return high;
  const Wide apart = Wide{high} - low;
  return static_cast<int64_t>(low + apart / step * step);
}

bool Range::is_full(Bank bank) const {
  const Range all = of(bank);
  return low <= all.low && high >= all.high;
}

Range Range::joined(const Range& other) const {
  Range both = {std::min(low, other.low), std::max(high, other.high), 1};
  const Wide apart = Wide{low} - other.low;
  both.step = gcd(gcd(step, other.step), static_cast<int64_t>((apart < 0 ? -apart : apart) & INT32_MAX));
  if (apart > INT32_MAX || apart < -INT32_MAX) both.step = both.low == both.high ? 0 : 1;
  return both;
}

ValueId Values::add(Value value) {
  const auto id = static_cast<ValueId>(all_.size());
  if (value.same == 0) value.same = id;
  all_.push_back(std::move(value));
  return id;
}

ValueId Values::constant(Bank bank, uint64_t bits) {
  Value value = {.bank = bank, .is_constant = true, .bits = bits};
  if (all_.empty())
    all_.push_back(
        {.bank = Bank::i32, .is_constant = true, .range = Range::just(0)});  // no value has `same` 0
  if (bank == Bank::i32) value.bits = static_cast<uint32_t>(bits);
  if (bank == Bank::i32) value.range = Range::just(static_cast<int32_t>(bits));
  if (bank == Bank::i64) value.range = Range::just(static_cast<int64_t>(bits));
  if (bank == Bank::i32 || bank == Bank::i64) value.affine = {true, value.range.low, {}};
  value.is_narrow = bank == Bank::i64 && value.range.is_narrow();
  const auto [found, is_new] = constants_.try_emplace({static_cast<uint8_t>(bank), value.bits}, 0);
  if (is_new) found->second = add(std::move(value));
  return found->second;
}

bool Values::is_fixed(ValueId id) const {
  const Affine& affine = all_[id].affine;
  return affine.known &&
         std::ranges::none_of(affine.terms, [&](const auto& term) { return all_[term.first].is_variable; });
}

std::string Values::text(ValueId id, Bank bank) const {
  const Value& value = all_[id];
  if (value.is_constant) {
    switch (bank) {
      case Bank::i64:
        return constant_i64(value.bits);
      case Bank::f32:
        return constant_f32(static_cast<uint32_t>(value.bits));
      case Bank::f64:
        return constant_f64(value.bits);
      default:
        return constant_i32(static_cast<uint32_t>(value.bits));
    }
  }
  const std::string whole = value.is_narrow ? "(uint64_t)" + value.name : value.name;
  if (bank == value.bank) return whole;
  switch (bank) {
    case Bank::i32:
      return value.bank == Bank::f32 ? fmt::format("vm_bits_f32({})", value.name) : low_text(id);
    case Bank::i64:
      return value.bank == Bank::f64 ? fmt::format("vm_bits_f64({})", value.name) : whole;
    case Bank::f32:
      return fmt::format("vm_f32({})", low_text(id));
    default:
      return fmt::format("vm_f64({})", whole);
  }
}

std::string Values::low_text(ValueId id) const {
  const Value& value = all_[id];
  if (value.is_constant) return constant_i32(static_cast<uint32_t>(value.bits));
  if (value.bank == Bank::i32 || value.is_narrow) return value.name;
  return fmt::format("(uint32_t){}", value.name);
}

std::string Values::size_text(ValueId id) const {
  const Value& value = all_[id];
  if (value.is_constant) return fmt::format("{}u", value.bits);
  return fmt::format("(size_t){}", value.name);
}

const char* Values::c_type(ValueId id) const {
  const Value& value = all_[id];
  switch (value.bank) {
    case Bank::i64:
      return value.is_narrow ? "uint32_t" : "uint64_t";
    case Bank::f32:
      return "float";
    case Bank::f64:
      return "double";
    default:
      return "uint32_t";
  }
}

bool Values::fold(Op op, const std::array<ValueId, 3>& operands, uint64_t* bits) const {
  uint64_t x[3] = {0, 0, 0};
  for (size_t i = 0; i < 3; ++i) {
    if (operands[i] == kNoValue) break;
    if (!all_[operands[i]].is_constant) return false;
    x[i] = all_[operands[i]].bits;
  }
  const auto a = static_cast<uint32_t>(x[0]);
  const auto b = static_cast<uint32_t>(x[1]);
  const auto sa = static_cast<int32_t>(a);
  const auto sb = static_cast<int32_t>(b);
  const auto la = static_cast<int64_t>(x[0]);
  const auto lb = static_cast<int64_t>(x[1]);
  const auto narrow = [&](uint32_t value) {
    *bits = value;
    return true;
  };
  const auto wide = [&](uint64_t value) {
    *bits = value;
    return true;
  };
  switch (op) {
    case Op::add_i32:
      return narrow(a + b);
    case Op::sub_i32:
      return narrow(a - b);
    case Op::mul_i32:
      return narrow(a * b);
    case Op::fma_i32:
      return narrow(a * b + static_cast<uint32_t>(x[2]));
    case Op::not_i32:
      return narrow(~a);
    case Op::and_i32:
      return narrow(a & b);
    case Op::or_i32:
      return narrow(a | b);
    case Op::xor_i32:
      return narrow(a ^ b);
    case Op::shl_i32:
      return narrow(a << (b & 31));
    case Op::shr_i32_s:
      return narrow(static_cast<uint32_t>(sa >> (b & 31)));
    case Op::shr_i32_u:
      return narrow(a >> (b & 31));
    case Op::add_i64:
      return wide(x[0] + x[1]);
    case Op::sub_i64:
      return wide(x[0] - x[1]);
    case Op::mul_i64:
      return wide(x[0] * x[1]);
    case Op::fma_i64:
      return wide(x[0] * x[1] + x[2]);
    case Op::not_i64:
      return wide(~x[0]);
    case Op::and_i64:
      return wide(x[0] & x[1]);
    case Op::or_i64:
      return wide(x[0] | x[1]);
    case Op::xor_i64:
      return wide(x[0] ^ x[1]);
    case Op::shl_i64:
      return wide(x[0] << (b & 63));
    case Op::shr_i64_s:
      return wide(static_cast<uint64_t>(la >> (b & 63)));
    case Op::shr_i64_u:
      return wide(x[0] >> (b & 63));
    case Op::trunc_i32_i8:
      return narrow(a & 0xFF);
    case Op::trunc_i32_i16:
      return narrow(a & 0xFFFF);
    case Op::trunc_i64_i32:
      return narrow(a);
    case Op::ext_i8_i32_s:
      return narrow(static_cast<uint32_t>(static_cast<int8_t>(a)));
    case Op::ext_i8_i32_u:
      return narrow(a & 0xFF);
    case Op::ext_i16_i32_s:
      return narrow(static_cast<uint32_t>(static_cast<int16_t>(a)));
    case Op::ext_i16_i32_u:
      return narrow(a & 0xFFFF);
    case Op::ext_i32_i64_s:
      return wide(static_cast<uint64_t>(int64_t{sa}));
    case Op::ext_i32_i64_u:
      return wide(a);
    case Op::cmp_eq_i32:
      return narrow(a == b);
    case Op::cmp_ne_i32:
      return narrow(a != b);
    case Op::cmp_lt_i32_s:
      return narrow(sa < sb);
    case Op::cmp_lt_i32_u:
      return narrow(a < b);
    case Op::cmp_nz_i32:
      return narrow(a != 0);
    case Op::cmp_eq_i64:
      return narrow(x[0] == x[1]);
    case Op::cmp_ne_i64:
      return narrow(x[0] != x[1]);
    case Op::cmp_lt_i64_s:
      return narrow(la < lb);
    case Op::cmp_lt_i64_u:
      return narrow(x[0] < x[1]);
    case Op::cmp_nz_i64:
      return narrow(x[0] != 0);
    case Op::select_i32:
      return narrow(static_cast<uint32_t>(a != 0 ? x[1] : x[2]));
    case Op::select_i64:
      return wide(a != 0 ? x[1] : x[2]);
    case Op::div_i32_u:
      return b != 0 && narrow(a / b);
    case Op::rem_i32_u:
      return b != 0 && narrow(a % b);
    case Op::div_i64_u:
      return x[1] != 0 && wide(x[0] / x[1]);
    case Op::rem_i64_u:
      return x[1] != 0 && wide(x[0] % x[1]);
    case Op::div_i32_s:
      return sb > 0 && narrow(static_cast<uint32_t>(sa / sb));
    case Op::rem_i32_s:
      return sb > 0 && narrow(static_cast<uint32_t>(sa % sb));
    case Op::div_i64_s:
      return lb > 0 && wide(static_cast<uint64_t>(la / lb));
    case Op::rem_i64_s:
      return lb > 0 && wide(static_cast<uint64_t>(la % lb));
    case Op::min_i32_s:
      return narrow(sb < sa ? b : a);
    case Op::max_i32_s:
      return narrow(sa < sb ? b : a);
    case Op::min_i32_u:
      return narrow(b < a ? b : a);
    case Op::max_i32_u:
      return narrow(a < b ? b : a);
    case Op::min_i64_s:
      return wide(lb < la ? x[1] : x[0]);
    case Op::max_i64_s:
      return wide(la < lb ? x[1] : x[0]);
    case Op::min_i64_u:
      return wide(x[1] < x[0] ? x[1] : x[0]);
    case Op::max_i64_u:
      return wide(x[0] < x[1] ? x[1] : x[0]);
    default:
      return false;
  }
}

Range Values::range(Op op, const std::array<ValueId, 3>& operands, Bank bank) const {
  const auto of = [&](size_t i) { return operands[i] == kNoValue ? Range{} : all_[operands[i]].range; };
  const Range a = of(0);
  const Range b = of(1);
  const Range c = of(2);
  const bool positive = a.low >= 0;
  switch (op) {
    case Op::add_i32:
    case Op::add_i64:
      return sum(a, b, bank);
    case Op::sub_i32:
    case Op::sub_i64:
      return fitted(Wide{a.low} - b.last(), Wide{a.high} - b.low, gcd(a.step, b.step), bank);
    case Op::mul_i32:
    case Op::mul_i64:
      return product(a, b, bank);
    case Op::fma_i32:
    case Op::fma_i64: {
      const Range times = product(a, b, bank);
      return times.is_full(bank) ? times : sum(times, c, bank);
    }
    case Op::trunc_i64_i32:
      return a.low >= INT32_MIN && a.high <= INT32_MAX ? a : Range::of(Bank::i32);
    case Op::ext_i32_i64_s:
      return a;
    case Op::ext_i32_i64_u:
      return positive ? a : Range{0, INT64_C(0xFFFFFFFF), 1};
    case Op::trunc_i32_i8:
    case Op::ext_i8_i32_u:
      return positive && a.high <= 0xFF ? a : Range{0, 0xFF, 1};
    case Op::trunc_i32_i16:
    case Op::ext_i16_i32_u:
      return positive && a.high <= 0xFFFF ? a : Range{0, 0xFFFF, 1};
    case Op::ext_i8_i32_s:
      return a.low >= -128 && a.high <= 127 ? a : Range{-128, 127, 1};
    case Op::ext_i16_i32_s:
      return a.low >= -32768 && a.high <= 32767 ? a : Range{-32768, 32767, 1};
    case Op::buffer_load_i8_u:
      return {0, 255, 1};
    case Op::buffer_load_i8_s:
      return {-128, 127, 1};
    case Op::buffer_load_i16_u:
      return {0, 65535, 1};
    case Op::buffer_load_i16_s:
      return {-32768, 32767, 1};
    case Op::and_i32:
    case Op::and_i64:
      if (b.low >= 0) return {0, positive ? std::min(a.high, b.high) : b.high, 1};
      return positive ? Range{0, a.high, 1} : Range::of(bank);
    case Op::shl_i32:
    case Op::shl_i64:
      if (b.step != 0 || b.low < 0 || b.low >= (bank == Bank::i32 ? 31 : 63)) return Range::of(bank);
      return product(a, Range::just(INT64_C(1) << b.low), bank);
    case Op::shr_i32_u:
    case Op::shr_i64_u:
      if (positive && b.step == 0 && b.low >= 0 && b.low < 32) return {a.low >> b.low, a.high >> b.low, 1};
      return positive ? Range{0, a.high, 1} : Range::of(bank);
    case Op::shr_i32_s:
    case Op::shr_i64_s:
      if (b.step == 0 && b.low >= 0 && b.low < 32) return {a.low >> b.low, a.high >> b.low, 1};
      return Range::of(bank);
    case Op::div_i32_s:
    case Op::div_i64_s:
      if (b.step == 0 && b.low > 0) return {a.low / b.low, a.high / b.low, 1};
      return Range::of(bank);
    case Op::div_i32_u:
    case Op::div_i64_u:
      if (positive && b.step == 0 && b.low > 0) return {a.low / b.low, a.high / b.low, 1};
      return Range::of(bank);
    case Op::rem_i32_s:
    case Op::rem_i64_s:
    case Op::rem_i32_u:
    case Op::rem_i64_u:
      if (positive && b.low > 0) return {0, std::min(a.high, b.high - 1), 1};
      return Range::of(bank);
    case Op::select_i32:
    case Op::select_i64: {
      const Value& condition = all_[operands[0]];
      const Range both = b.joined(c);
      // The smaller, or the larger, of two values.
      if (condition.op == Op::cmp_lt_i32_s || condition.op == Op::cmp_lt_i64_s ||
          ((condition.op == Op::cmp_lt_i32_u || condition.op == Op::cmp_lt_i64_u) && b.low >= 0 &&
           c.low >= 0)) {
        const auto root = [&](ValueId id) { return all_[id].same; };
        const auto same = [&](ValueId x, ValueId y) {
          return root(x) == root(y) ||
                 (all_[x].is_constant && all_[y].is_constant && all_[x].bits == all_[y].bits);
        };
        if (same(condition.operands[0], operands[1]) && same(condition.operands[1], operands[2]))
          return {both.low, std::min(b.high, c.high), both.step};
        if (same(condition.operands[0], operands[2]) && same(condition.operands[1], operands[1]))
          return {std::max(b.low, c.low), both.high, 1};
      }
      return both;
    }
    case Op::min_i32_s:
    case Op::min_i64_s:
      return {std::min(a.low, b.low), std::min(a.high, b.high), 1};
    case Op::max_i32_s:
    case Op::max_i64_s:
      return {std::max(a.low, b.low), std::max(a.high, b.high), 1};
    default:
      if (vm::info(op).mnemonic().starts_with("cmp.")) return {0, 1, 1};
      return Range::of(bank);
  }
}

Affine Values::affine(Op op, const std::array<ValueId, 3>& operands, const Range& range) const {
  // A sum that may wrap is not affine.
  if (range.is_full(Bank::i32) || range.low == INT64_MIN || range.high == INT64_MAX) return {};
  const auto of = [&](size_t i) { return all_[operands[i]].affine; };
  const auto add = [](const Affine& x, const Affine& y, int64_t factor) -> Affine {
    if (!x.known || !y.known) return {};
    Affine all = {true, x.base + factor * y.base, x.terms};
    for (const auto& [variable, coefficient] : y.terms) {
      auto found = std::ranges::find(all.terms, variable, &std::pair<ValueId, int64_t>::first);
      if (found == all.terms.end())
        all.terms.emplace_back(variable, factor * coefficient);
      else
        found->second += factor * coefficient;
    }
    std::erase_if(all.terms, [](const auto& each) { return each.second == 0; });
    std::ranges::sort(all.terms);
    return all;
  };
  const auto times = [&](const Affine& x, const Affine& y) -> Affine {
    if (!x.known || !y.known) return {};
    if (x.terms.empty()) return add({true, 0, {}}, y, x.base);
    if (y.terms.empty()) return add({true, 0, {}}, x, y.base);
    return {};
  };
  switch (op) {
    case Op::add_i32:
    case Op::add_i64:
      return add(of(0), of(1), 1);
    case Op::sub_i32:
    case Op::sub_i64:
      return add(of(0), of(1), -1);
    case Op::mul_i32:
    case Op::mul_i64:
      return times(of(0), of(1));
    case Op::fma_i32:
    case Op::fma_i64:
      return add(times(of(0), of(1)), of(2), 1);
    case Op::shl_i32:
    case Op::shl_i64:
      if (all_[operands[1]].is_constant && all_[operands[1]].bits < 31)
        return add({true, 0, {}}, of(0), INT64_C(1) << all_[operands[1]].bits);
      return {};
    case Op::trunc_i64_i32:
    case Op::ext_i32_i64_s:
      return of(0);
    case Op::ext_i32_i64_u:
      return all_[operands[0]].range.low >= 0 ? of(0) : Affine{};
    default:
      return {};
  }
}

}  // namespace halyard::aot
