// Every instruction that computes a value only from values. The tables contain operands and results, and the
// test generates the function around the instruction. The expected results are those of isa.md, sections 4,
// 5.1 and 5.2.
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "machine_testing.h"

namespace halyard::vm::test {
namespace {

constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kInf64 = std::numeric_limits<double>::infinity();
constexpr double kNan64 = std::numeric_limits<double>::quiet_NaN();

struct Case {
  std::string mnemonic;
  Values operands;
  Variant result;
};

std::string bank_name(Bank bank) {
  switch (bank) {
    case Bank::i32:
      return "i32";
    case Bank::i64:
      return "i64";
    case Bank::f32:
      return "f32";
    default:
      return "f64";
  }
}

bool is_pair(Bank bank) { return bank == Bank::i64 || bank == Bank::f64; }

const OpInfo* find_op(const std::string& mnemonic) {
  for (const OpInfo& op : kOps) {
    if (op.mnemonic() == mnemonic) return &op;
  }
  return nullptr;
}

// A function that loads its arguments, pairs first, and applies the instruction. `order[n]` is the operand of
// argument n.
std::string function_around(const OpInfo& op, std::vector<size_t>& order) {
  std::vector<std::string> registers(op.operand_count);
  std::string arguments;
  int next = 0;
  for (const bool pairs : {true, false}) {
    for (size_t i = 0; i + 1 < op.operand_count; ++i) {
      if (is_pair(op.operands[i].bank) != pairs) continue;
      registers[i] = pairs ? fmt::format("%i{}:{}", next, next + 1) : fmt::format("%i{}", next);
      next += pairs ? 2 : 1;
      arguments += fmt::format("{}{}: {}", arguments.empty() ? "" : ", ", registers[i],
                               bank_name(op.operands[i].bank));
      order.push_back(i);
    }
  }
  const Bank result = op.operands[op.operand_count - 1u].bank;
  std::string line;
  for (size_t i = 0; i + 1 < op.operand_count; ++i) line += (i ? ", " : "") + registers[i];
  const std::string target = is_pair(result) ? "%i10:11" : "%i10";
  return fmt::format("vm.func @{}({}) -> ({}) {{\n {} = vm.{} {}\n vm.return {}\n}}\nvm.export @{}\n",
                     op.mnemonic(), arguments, bank_name(result), target, op.mnemonic(), line, target,
                     op.mnemonic());
}

// Runs all cases whose opcodes a version has in one module of that version.
void run(const std::vector<Case>& cases, Code failure = Code::OK) {
  for (const uint32_t version : {15u, 17u}) {
    std::string text = "vm.module @m\n";
    std::map<std::string, std::vector<size_t>> orders;
    for (const Case& each : cases) {
      const OpInfo* op = find_op(each.mnemonic);
      ASSERT_NE(op, nullptr) << each.mnemonic;
      if (op->since > version) continue;
      auto [order, added] = orders.try_emplace(each.mnemonic);
      if (added) text += function_around(*op, order->second);
    }
    Machine machine(text, version);
    if (testing::Test::HasFatalFailure()) return;
    for (const Case& each : cases) {
      if (!orders.contains(each.mnemonic)) continue;
      Values arguments;
      for (const size_t operand : orders[each.mnemonic]) arguments.push_back(each.operands[operand]);
      const Callable callee = *machine.context->find("m", each.mnemonic);
      Values results(1);
      const Result<> done = Invocation(machine.context).call(callee, arguments, results);
      std::string shown = each.mnemonic;
      for (const Variant& operand : each.operands) shown += " " + to_text(operand);
      if (failure != Code::OK) {
        ASSERT_FALSE(done) << shown;
        EXPECT_EQ(done.error().code(), failure) << shown << ": " << done.error().text();
        continue;
      }
      ASSERT_TRUE(done) << shown << ": " << done.error().text();
      EXPECT_TRUE(results[0].type() == each.result.type() && results[0].bits() == each.result.bits())
          << shown << " gives " << to_text(results[0]) << ", expected " << to_text(each.result);
    }
  }
}

const std::vector<Case> kIntegers = {
    {"add.i32", {i32(kMax32), i32(1)}, i32(kMin32)},
    {"sub.i32", {i32(kMin32), i32(1)}, i32(kMax32)},
    {"mul.i32", {i32(0x10001), i32(0x10001)}, i32(0x20001)},
    {"mul.i32", {i32(kMin32), i32(-1)}, i32(kMin32)},
    {"div.i32.s", {i32(-7), i32(2)}, i32(-3)},
    {"div.i32.s", {i32(kMin32), i32(-1)}, i32(kMin32)},
    {"div.i32.u", {i32(-7), i32(2)}, i32(0x7FFFFFFC)},
    {"rem.i32.s", {i32(-7), i32(2)}, i32(-1)},
    {"rem.i32.s", {i32(7), i32(-2)}, i32(1)},
    {"rem.i32.s", {i32(kMin32), i32(-1)}, i32(0)},
    {"rem.i32.u", {i32(-7), i32(4)}, i32(1)},
    {"fma.i32", {i32(3), i32(5), i32(-1)}, i32(14)},
    {"fma.i32", {i32(kMax32), i32(2), i32(3)}, i32(1)},
    {"add.i64", {i64(kMax64), i64(1)}, i64(kMin64)},
    {"sub.i64", {i64(kMin64), i64(1)}, i64(kMax64)},
    {"mul.i64", {i64(0x100000001), i64(0x100000001)}, i64(0x200000001)},
    {"div.i64.s", {i64(-7), i64(2)}, i64(-3)},
    {"div.i64.s", {i64(kMin64), i64(-1)}, i64(kMin64)},
    {"div.i64.u", {i64(-2), i64(2)}, i64(kMax64)},
    {"rem.i64.s", {i64(-7), i64(4)}, i64(-3)},
    {"rem.i64.s", {i64(kMin64), i64(-1)}, i64(0)},
    {"rem.i64.u", {i64(-1), i64(10)}, i64(5)},
    {"fma.i64", {i64(1), i64(kMax64), i64(1)}, i64(kMin64)},
    {"not.i32", {i32(0x0F0F0F0F)}, i32(0xF0F0F0F0)},
    {"and.i32", {i32(0xFF00FF), i32(0x0FF0FF)}, i32(0x0F00FF)},
    {"or.i32", {i32(0xF0), i32(0x0F)}, i32(0xFF)},
    {"xor.i32", {i32(0xFF), i32(0x0F)}, i32(0xF0)},
    {"not.i64", {i64(0)}, i64(-1)},
    {"and.i64", {i64(0x0FF000000FF), i64(0xFF00000000F)}, i64(0x0F00000000F)},
    {"or.i64", {i64(0xF00000000), i64(0xF)}, i64(0xF0000000F)},
    {"xor.i64", {i64(0xF0000000F), i64(0xF)}, i64(0xF00000000)},
    {"shl.i32", {i32(3), i32(33)}, i32(6)},
    {"shl.i32", {i32(1), i32(31)}, i32(kMin32)},
    {"shr.i32.s", {i32(-8), i32(33)}, i32(-4)},
    {"shr.i32.u", {i32(-8), i32(33)}, i32(0x7FFFFFFC)},
    {"shl.i64", {i64(3), i32(65)}, i64(6)},
    {"shl.i64", {i64(1), i32(63)}, i64(kMin64)},
    {"shr.i64.s", {i64(-8), i32(-63)}, i64(-4)},
    {"shr.i64.u", {i64(-8), i32(1)}, i64(0x7FFFFFFFFFFFFFFC)},
    {"ctlz.i32", {i32(0)}, i32(32)},
    {"ctlz.i32", {i32(1)}, i32(31)},
    {"ctlz.i32", {i32(-1)}, i32(0)},
    {"ctlz.i64", {i64(0)}, i64(64)},
    {"ctlz.i64", {i64(0x100000000)}, i64(31)},
    {"abs.i32", {i32(-5)}, i32(5)},
    {"abs.i32", {i32(kMin32)}, i32(kMin32)},
    {"abs.i64", {i64(-5)}, i64(5)},
    {"abs.i64", {i64(kMin64)}, i64(kMin64)},
    {"min.i32.s", {i32(-1), i32(1)}, i32(-1)},
    {"min.i32.u", {i32(-1), i32(1)}, i32(1)},
    {"max.i32.s", {i32(-1), i32(1)}, i32(1)},
    {"max.i32.u", {i32(-1), i32(1)}, i32(-1)},
    {"min.i64.s", {i64(-1), i64(1)}, i64(-1)},
    {"min.i64.u", {i64(-1), i64(1)}, i64(1)},
    {"max.i64.s", {i64(-1), i64(1)}, i64(1)},
    {"max.i64.u", {i64(-1), i64(1)}, i64(-1)},
    {"trunc.i32.i8", {i32(0x1FF)}, i32(0xFF)},
    {"trunc.i32.i16", {i32(-1)}, i32(0xFFFF)},
    {"trunc.i64.i32", {i64(0x1FFFFFFFF)}, i32(-1)},
    {"ext.i8.i32.s", {i32(0x180)}, i32(-128)},
    {"ext.i8.i32.u", {i32(0x180)}, i32(0x80)},
    {"ext.i16.i32.s", {i32(0x18000)}, i32(-32768)},
    {"ext.i16.i32.u", {i32(0x18000)}, i32(0x8000)},
    {"ext.i32.i64.s", {i32(-2)}, i64(-2)},
    {"ext.i32.i64.u", {i32(-2)}, i64(0xFFFFFFFE)},
    {"cmp.eq.i32", {i32(2), i32(2)}, i32(1)},
    {"cmp.eq.i32", {i32(2), i32(3)}, i32(0)},
    {"cmp.ne.i32", {i32(2), i32(3)}, i32(1)},
    {"cmp.ne.i32", {i32(2), i32(2)}, i32(0)},
    {"cmp.lt.i32.s", {i32(-1), i32(1)}, i32(1)},
    {"cmp.lt.i32.s", {i32(1), i32(1)}, i32(0)},
    {"cmp.lt.i32.u", {i32(-1), i32(1)}, i32(0)},
    {"cmp.lt.i32.u", {i32(1), i32(-1)}, i32(1)},
    {"cmp.nz.i32", {i32(kMin32)}, i32(1)},
    {"cmp.nz.i32", {i32(0)}, i32(0)},
    {"cmp.eq.i64", {i64(0x100000002), i64(2)}, i32(0)},
    {"cmp.eq.i64", {i64(0x100000002), i64(0x100000002)}, i32(1)},
    {"cmp.ne.i64", {i64(0x100000002), i64(2)}, i32(1)},
    {"cmp.ne.i64", {i64(2), i64(2)}, i32(0)},
    {"cmp.lt.i64.s", {i64(-1), i64(1)}, i32(1)},
    {"cmp.lt.i64.s", {i64(1), i64(-1)}, i32(0)},
    {"cmp.lt.i64.u", {i64(-1), i64(1)}, i32(0)},
    {"cmp.lt.i64.u", {i64(1), i64(0x100000000)}, i32(1)},
    {"cmp.nz.i64", {i64(0x100000000)}, i32(1)},
    {"cmp.nz.i64", {i64(0)}, i32(0)},
};

// The cases for both float widths. F creates a value of the width, N is its NaN, I its infinity.
template <typename F>
std::vector<Case> floats(const std::string& f, F value, auto nan, auto infinity) {
  const Variant n = value(nan);
  const Variant inf = value(infinity);
  // Evaluated at run time, since constant folding may differ from the C library in the last bit.
  const volatile double runtime_one = 1;
  const auto one = static_cast<decltype(nan)>(runtime_one);
  const auto sqrt2 = std::sqrt(2 * one);
  return {
      {"add." + f, {value(1.5), value(2.25)}, value(3.75)},
      {"add." + f, {inf, value(-infinity)}, value(infinity + -infinity)},
      {"sub." + f, {value(1.5), value(2)}, value(-0.5)},
      {"mul." + f, {value(1.5), value(-2)}, value(-3)},
      {"div." + f, {value(1), value(4)}, value(0.25)},
      {"div." + f, {value(-1), value(0)}, value(-infinity)},
      {"rem." + f, {value(5), value(3)}, value(-1)},
      {"rem." + f, {value(6), value(4)}, value(-2)},
      {"rem." + f, {value(-7), value(2)}, value(1)},
      {"fma." + f, {value(2), value(3), value(1.5)}, value(7.5)},
      {"abs." + f, {value(-0.0)}, value(0.0)},
      {"abs." + f, {value(-2.5)}, value(2.5)},
      {"abs." + f, {value(-nan)}, n},
      {"neg." + f, {value(0.0)}, value(-0.0)},
      {"neg." + f, {n}, value(-nan)},
      {"ceil." + f, {value(1.25)}, value(2)},
      {"ceil." + f, {value(-0.5)}, value(-0.0)},
      {"floor." + f, {value(-1.25)}, value(-2)},
      {"round." + f, {value(2.5)}, value(3)},
      {"round." + f, {value(-2.5)}, value(-3)},
      {"round." + f, {value(-0.4)}, value(-0.0)},
      {"round." + f + ".even", {value(2.5)}, value(2)},
      {"round." + f + ".even", {value(3.5)}, value(4)},
      {"round." + f + ".even", {value(-2.5)}, value(-2)},
      {"round." + f + ".even", {value(0.5)}, value(0.0)},
      {"round." + f + ".even", {value(-0.5)}, value(0.0)},  // +0, unlike roundeven
      {"round." + f + ".even", {value(-0.4)}, value(-0.0)},
      {"round." + f + ".even", {value(2.6)}, value(3)},
      {"round." + f + ".even", {inf}, inf},
      {"round." + f + ".even", {value(1e30)}, value(1e30)},
      {"min." + f, {value(1), value(2)}, value(1)},
      {"min." + f, {value(2), value(1)}, value(1)},
      {"min." + f, {n, value(1)}, n},
      {"min." + f, {value(1), n}, value(1)},
      {"min." + f, {value(0.0), value(-0.0)}, value(0.0)},
      {"min." + f, {value(-0.0), value(0.0)}, value(-0.0)},
      {"max." + f, {value(1), value(2)}, value(2)},
      {"max." + f, {value(2), value(1)}, value(2)},
      {"max." + f, {n, value(1)}, n},
      {"max." + f, {value(1), n}, value(1)},
      {"max." + f, {value(-0.0), value(0.0)}, value(-0.0)},
      {"sqrt." + f, {value(2)}, value(sqrt2)},
      {"rsqrt." + f, {value(2)}, value(one / sqrt2)},
      {"rsqrt." + f, {value(0)}, inf},
      {"atan." + f, {value(1.5)}, value(std::atan(1.5 * runtime_one))},
      {"atan2." + f, {value(1), value(-2)}, value(std::atan2(runtime_one, -2 * runtime_one))},
      {"cos." + f, {value(1)}, value(std::cos(runtime_one))},
      {"sin." + f, {value(1)}, value(std::sin(runtime_one))},
      {"exp." + f, {value(1)}, value(std::exp(runtime_one))},
      {"exp2." + f, {value(3)}, value(8)},
      {"expm1." + f, {value(1)}, value(std::expm1(runtime_one))},
      {"log." + f, {value(2)}, value(std::log(2 * runtime_one))},
      {"log." + f, {value(0)}, value(-infinity)},
      {"log10." + f, {value(1000)}, value(3)},
      {"log1p." + f, {value(1)}, value(std::log1p(runtime_one))},
      {"log2." + f, {value(8)}, value(3)},
      {"pow." + f, {value(2), value(10)}, value(1024)},
      {"tanh." + f, {value(1)}, value(std::tanh(runtime_one))},
      {"erf." + f, {value(1)}, value(std::erf(runtime_one))},
      {"cmp.eq." + f + ".o", {value(1), value(1)}, i32(1)},
      {"cmp.eq." + f + ".o", {value(0.0), value(-0.0)}, i32(1)},
      {"cmp.eq." + f + ".o", {value(1), n}, i32(0)},
      {"cmp.eq." + f + ".o", {n, n}, i32(0)},
      {"cmp.eq." + f + ".u", {value(1), n}, i32(1)},
      {"cmp.eq." + f + ".u", {value(1), value(1)}, i32(1)},
      {"cmp.eq." + f + ".u", {value(1), value(2)}, i32(0)},
      {"cmp.ne." + f + ".o", {value(1), value(2)}, i32(1)},
      {"cmp.ne." + f + ".o", {value(1), value(1)}, i32(0)},
      {"cmp.ne." + f + ".o", {n, n}, i32(1)},
      {"cmp.ne." + f + ".u", {n, value(1)}, i32(1)},
      {"cmp.ne." + f + ".u", {value(1), value(1)}, i32(0)},
      {"cmp.lt." + f + ".o", {value(1), value(2)}, i32(1)},
      {"cmp.lt." + f + ".o", {value(2), value(2)}, i32(0)},
      {"cmp.lt." + f + ".o", {n, value(2)}, i32(0)},
      {"cmp.lt." + f + ".u", {value(1), n}, i32(1)},
      {"cmp.lt." + f + ".u", {value(2), value(2)}, i32(0)},
      {"cmp.lte." + f + ".o", {value(2), value(2)}, i32(1)},
      {"cmp.lte." + f + ".o", {value(3), value(2)}, i32(0)},
      {"cmp.lte." + f + ".o", {value(2), n}, i32(0)},
      {"cmp.lte." + f + ".u", {n, value(2)}, i32(1)},
      {"cmp.lte." + f + ".u", {value(3), value(2)}, i32(0)},
      {"cmp.nan." + f, {n}, i32(1)},
      {"cmp.nan." + f, {inf}, i32(0)},
  };
}

const std::vector<Case> kConversions = {
    {"bitcast.i32.f32", {i32(0x40490FDB)}, Variant::value(ValueType::f32, 0x40490FDB)},
    {"bitcast.f32.i32", {f32(-0.0f)}, i32(kMin32)},
    {"bitcast.i64.f64", {i64(0x400921FB54442D18)}, Variant::value(ValueType::f64, 0x400921FB54442D18)},
    {"bitcast.f64.i64", {f64(-0.0)}, i64(kMin64)},
    {"cast.si32.f32", {i32(-1)}, f32(-1)},
    {"cast.si32.f32", {i32(16777217)}, f32(16777216)},
    {"cast.ui32.f32", {i32(-1)}, f32(4294967296.0f)},
    {"cast.si64.f32", {i64(-3)}, f32(-3)},
    {"cast.ui64.f32", {i64(-1)}, f32(18446744073709551616.0f)},
    {"cast.ui64.f32", {i64(0x8000008000000001)}, Variant::value(ValueType::f32, 0x5F000001)},  // rounded once
    {"cast.si32.f64", {i32(kMin32)}, f64(-2147483648.0)},
    {"cast.ui32.f64", {i32(-1)}, f64(4294967295.0)},
    {"cast.si64.f64", {i64(9007199254740993)}, f64(9007199254740992.0)},
    {"cast.ui64.f64", {i64(-1)}, f64(18446744073709551616.0)},
    {"cast.f32.si32", {f32(2.5f)}, i32(3)},
    {"cast.f32.si32", {f32(-2.5f)}, i32(-3)},
    {"cast.f32.si32", {f32(0.49999997f)}, i32(0)},
    {"cast.f32.si32", {f32(3e9f)}, i32(-1294967296)},
    {"cast.f32.si32", {f32(kNan)}, i32(0)},
    {"cast.f32.si32", {f32(9.3e18f)}, i32(0)},
    {"cast.f32.si32", {f32(-kInf)}, i32(0)},
    {"cast.f32.ui32", {f32(4294967040.0f)}, i32(0xFFFFFF00)},
    {"cast.f32.ui32", {f32(-1)}, i32(-1)},
    {"cast.f32.ui32", {f32(kInf)}, i32(0)},
    {"cast.f32.si64", {f32(-2.5f)}, i64(-3)},
    {"cast.f32.si64", {f32(9223371487098961920.0f)}, i64(9223371487098961920)},
    {"cast.f32.si64", {f32(9223372036854775808.0f)}, i64(kMin64)},
    {"cast.f32.si64", {f32(-9223372036854775808.0f)}, i64(kMin64)},
    {"cast.f32.si64", {f32(kNan)}, i64(kMin64)},
    {"cast.f32.ui64", {f32(2.5f)}, i64(3)},
    {"cast.f32.ui64", {f32(1e19f)}, i64(static_cast<int64_t>(9999999980506447872u))},
    {"cast.f32.ui64", {f32(-1)}, i64(-1)},
    {"cast.f32.ui64", {f32(kNan)}, i64(kMin64)},
    {"cast.f32.ui64", {f32(1e20f)}, i64(0)},
    {"cast.f32.ui64", {f32(kInf)}, i64(0)},
    {"cast.f64.si32", {f64(16777217.0)}, i32(16777216)},
    {"cast.f64.si32", {f64(-2.5)}, i32(-3)},
    {"cast.f64.si32", {f64(4294967295.0)}, i32(0)},
    {"cast.f64.si32", {f64(kNan64)}, i32(0)},
    {"cast.f64.ui32", {f64(4294967295.0)}, i32(0)},
    {"cast.f64.ui32", {f64(3000000000.0)}, i32(-1294967296)},
    {"cast.f64.si64", {f64(4503599627370497.5)}, i64(4503599627370498)},
    {"cast.f64.si64", {f64(-0.5)}, i64(-1)},
    {"cast.f64.si64", {f64(1e300)}, i64(kMin64)},
    {"cast.f64.si64", {f64(kNan64)}, i64(kMin64)},
    {"cast.f64.ui64", {f64(2.5)}, i64(3)},
    {"cast.f64.ui64", {f64(1e19)}, i64(kMin64)},
    {"cast.f64.ui64", {f64(-1.0)}, i64(-1)},
    {"trunc.f64.f32", {f64(1e300)}, f32(kInf)},
    {"trunc.f64.f32", {f64(0.1)}, f32(0.1f)},
    {"ext.f32.f64", {f32(0.1f)}, f64(static_cast<double>(0.1f))},
};

const std::vector<Case> kSelects = {
    {"select.i32", {i32(2), i32(5), i32(6)}, i32(5)},
    {"select.i32", {i32(0), i32(5), i32(6)}, i32(6)},
    {"select.i64", {i32(-1), i64(0x500000001), i64(6)}, i64(0x500000001)},
    {"select.i64", {i32(0), i64(5), i64(0x600000001)}, i64(0x600000001)},
    {"select.f32", {i32(1), f32(5), f32(6)}, f32(5)},
    {"select.f64", {i32(0), f64(5), f64(6.5)}, f64(6.5)},
};

std::vector<Case> float_cases_32() {
  return floats("f32", [](double value) { return f32(static_cast<float>(value)); }, kNan, kInf);
}
std::vector<Case> float_cases_64() {
  return floats("f64", [](double value) { return f64(value); }, kNan64, kInf64);
}

TEST(Arithmetic, Integers) { run(kIntegers); }
TEST(Arithmetic, FloatsOf32Bits) { run(float_cases_32()); }
TEST(Arithmetic, FloatsOf64Bits) { run(float_cases_64()); }
TEST(Arithmetic, Conversions) { run(kConversions); }

TEST(Arithmetic, DivisionByZeroIsAStatus) {
  std::vector<Case> cases;
  for (const char* op : {"div", "rem"}) {
    for (const char* sign : {"s", "u"}) {
      cases.push_back({fmt::format("{}.i32.{}", op, sign), {i32(1), i32(0)}, {}});
      cases.push_back({fmt::format("{}.i64.{}", op, sign), {i64(1), i64(0)}, {}});
    }
  }
  run(cases, Code::INVALID_ARGUMENT);
}

// The product is rounded before the sum: a fused multiply-add would give 2^-24 or 2^-53, since it rounds
// once.
TEST(Arithmetic, FmaRoundsTwice) {
  const float a = 1.0f + std::ldexp(1.0f, -12);
  const double b = 1.0 + std::ldexp(1.0, -27);
  run({{"fma.f32", {f32(a), f32(a), f32(-(1.0f + std::ldexp(1.0f, -11)))}, f32(0)},
       {"fma.f64", {f64(b), f64(b), f64(-(1.0 + std::ldexp(1.0, -26)))}, f64(0)}});
}

// select has its own text form.
TEST(Arithmetic, Select) {
  for (const Case& each : kSelects) {
    const std::string type = each.mnemonic.substr(7);
    const bool wide = type.ends_with("64");
    const std::string text = fmt::format(
        "vm.module @m\nvm.export @f\nvm.func @f({}) -> ({}) {{\n {} = vm.{} {}\n vm.return {}\n}}\n",
        wide ? fmt::format("%i0:1: {0}, %i2:3: {0}, %i4: i32", type)
             : fmt::format("%i0: {0}, %i1: {0}, %i2: i32", type),
        type, wide ? "%i6:7" : "%i6", each.mnemonic, wide ? "%i4 ? %i0:1 : %i2:3" : "%i2 ? %i0 : %i1",
        wide ? "%i6:7" : "%i6");
    Machine machine(text);
    machine.expect("f", {each.operands[1], each.operands[2], each.operands[0]}, {each.result});
  }
}

// Every instruction that reads value registers and writes one must be in a table above.
TEST(Arithmetic, NoInstructionIsLeftOut) {
  std::set<std::string, std::less<>> covered;
  for (const auto& cases : {kIntegers, float_cases_32(), float_cases_64(), kConversions, kSelects}) {
    for (const Case& each : cases) covered.insert(each.mnemonic);
  }
  for (const OpInfo& op : kOps) {
    bool plain = op.operand_count >= 2 && op.operands[op.operand_count - 1u].writes;
    for (size_t i = 0; i < op.operand_count; ++i) {
      plain = plain && op.operands[i].kind == OperandKind::reg && op.operands[i].bank != Bank::ref;
    }
    if (!plain || op.mnemonic().starts_with("global.")) continue;
    EXPECT_TRUE(covered.contains(op.mnemonic())) << op.mnemonic();
  }
}

}  // namespace
}  // namespace halyard::vm::test
