// Every opcode of the table that takes and gives numbers: the C of a function with this one instruction has
// the interpreter's results and statuses, for edge cases of all operands, with each compiler, with and
// without optimization.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "aot/forms.h"
#include "c_program.h"
#include "machine_testing.h"
#include "module_builder.h"
#include "vm/format/features.h"

namespace halyard::aot::test {
namespace {

using vm::Bank;
using vm::Op;
using vm::OperandKind;
using vm::Variant;

constexpr size_t kListSize = 3;

struct Sample {
  Op op;
  std::vector<Bank> arguments;
  Bank result = Bank::none;
  uint64_t immediate = 0;
};

constexpr char type_of(Bank bank) { return "?iIfF"[static_cast<size_t>(bank)]; }

const std::vector<uint64_t>& edges(Bank bank) {
  static const std::vector<uint64_t> i32 = {
      0,    1,    2,    3,      7,      15,     31,         32,         33,         63,         64,        65,
      0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFE, 0xFFFFFFFF};
  static const std::vector<uint64_t> i64 = {0,
                                            1,
                                            2,
                                            3,
                                            7,
                                            31,
                                            63,
                                            64,
                                            0x7FFFFFFF,
                                            0x80000000,
                                            0xFFFFFFFF,
                                            0x100000000,
                                            uint64_t{1} << 62,
                                            0x7FFFFFFFFFFFFFFF,
                                            0x8000000000000000,
                                            0x8000000000000001,
                                            0xFFFFFFFFFFFFFFFE,
                                            0xFFFFFFFFFFFFFFFF};
  static const std::vector<double> numbers = {0.0,          0.25,
                                              0.5,          0.49999997,
                                              1.0,          1.5,
                                              2.5,          3.5,
                                              88.5,         1e-40,
                                              100.25,       16777217.0,
                                              2147483647.0, 2147483648.0,
                                              4294967295.0, 9.2233720368547758e18,
                                              1e19,         1.8446744073709552e19,
                                              3e38};
  const auto floats = []<typename Float, typename Bits>(Float, Bits) {
    std::vector<uint64_t> all;
    for (const double number : numbers)
      for (const double value : {number, -number})
        all.push_back(std::bit_cast<Bits>(static_cast<Float>(value)));
    for (const Float value : {std::numeric_limits<Float>::infinity(), -std::numeric_limits<Float>::infinity(),
                              std::numeric_limits<Float>::quiet_NaN(),
                              std::numeric_limits<Float>::denorm_min(), std::numeric_limits<Float>::max()})
      all.push_back(std::bit_cast<Bits>(value));
    return all;
  };
  static const std::vector<uint64_t> f32 = floats(float{}, uint32_t{});
  static const std::vector<uint64_t> f64 = floats(double{}, uint64_t{});
  const std::vector<uint64_t>* const all[] = {nullptr, &i32, &i64, &f32, &f64};
  return *all[static_cast<size_t>(bank)];
}

// The opcodes whose operands are value registers, lists of them and constants. Globals have a test of their
// own.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (size_t i = 0; i < vm::kOpCount; ++i) {
    const vm::OpInfo& op = vm::kOps[i];
    Sample sample{.op = static_cast<Op>(i)};
    bool plain = !(op.flags & (vm::TERMINATOR | vm::MARKER | vm::PREFIX));
    bool immediate = false;
    for (size_t n = 0; n < op.operand_count; ++n) {
      const vm::Operand& operand = op.operands[n];
      const bool value = operand.bank != Bank::ref && operand.bank != Bank::any && operand.bank != Bank::none;
      if (operand.kind == OperandKind::reg && value && operand.writes) {
        sample.result = operand.bank;
      } else if (operand.kind == OperandKind::reg && value) {
        sample.arguments.push_back(operand.bank);
      } else if (operand.kind == OperandKind::reg_list && value) {
        sample.arguments.insert(sample.arguments.end(), kListSize, operand.bank);
      } else if (operand.kind == OperandKind::immediate) {
        immediate = true;
        sample.result = operand.bank;
      } else {
        plain = false;
      }
    }
    if (!plain || sample.result == Bank::none) continue;
    const Bank bank = sample.result;
    if (!immediate) {
      all.push_back(sample);
      continue;
    }
    for (const uint64_t bits : edges(bank)) {
      sample.immediate = bits;
      all.push_back(sample);
    }
  }
  return all;
}

Signature signature_of(const Sample& sample) {
  Signature signature;
  for (const Bank bank : sample.arguments) signature.arguments += type_of(bank);
  signature.results = type_of(sample.result);
  return signature;
}

vm::test::FunctionParts function_of(const Sample& sample) {
  vm::test::CodeBuilder code;
  code.block().op(sample.op);
  const vm::OpInfo& op = vm::info(sample.op);
  uint16_t next = 0;
  std::string convention = "0";
  for (const Bank bank : sample.arguments) convention += type_of(bank);
  // Arguments take registers as the convention says; pairs are even.
  std::vector<uint16_t> registers;
  for (const Bank bank : sample.arguments) {
    if (vm::is_wide(bank)) next = static_cast<uint16_t>((next + 1) / 2 * 2);
    registers.push_back(next);
    next = static_cast<uint16_t>(next + (vm::is_wide(bank) ? 2 : 1));
  }
  const auto result = static_cast<uint16_t>((next + 1) / 2 * 2);
  size_t argument = 0;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const vm::Operand& operand = op.operands[i];
    if (operand.kind == OperandKind::immediate) {
      vm::is_wide(operand.bank) ? code.u64(sample.immediate)
                                : code.u32(static_cast<uint32_t>(sample.immediate));
    } else if (operand.kind == OperandKind::reg_list) {
      code.list(std::span(registers).subspan(argument, kListSize));
      argument += kListSize;
    } else {
      code.u16(operand.writes ? result : registers[argument++]);
    }
  }
  code.ret({result});
  convention += sample.arguments.empty() ? "v_" : "_";
  return {.code = code.bytes(),
          .convention = convention + type_of(sample.result),
          .values = result + 2,
          .features = vm::kFeatureF32 | vm::kFeatureF64};
}

Variant value(Bank bank, uint64_t bits) {
  constexpr vm::ValueType kTypes[] = {vm::ValueType::none, vm::ValueType::i32, vm::ValueType::i64,
                                      vm::ValueType::f32, vm::ValueType::f64};
  return Variant::value(kTypes[static_cast<size_t>(bank)], bits);
}

bool is_nan(Bank bank, uint64_t bits) {
  if (bank == Bank::f32) return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return bank == Bank::f64 && std::isnan(std::bit_cast<double>(bits));
}

// The combinations of edge cases, thinned out where there are more than `most`.
std::vector<std::vector<uint64_t>> combinations(const std::vector<Bank>& banks, size_t most) {
  size_t count = 1;
  for (const Bank bank : banks) count = std::min<size_t>(count * edges(bank).size(), size_t{1} << 30);
  std::vector<std::vector<uint64_t>> all;
  const size_t step = count <= most ? 1 : (count / most) | 1;
  for (size_t at = 0; at < count; at += step) {
    std::vector<uint64_t> values;
    size_t rest = at;
    for (const Bank bank : banks) {
      values.push_back(edges(bank)[rest % edges(bank).size()]);
      rest /= edges(bank).size();
    }
    all.push_back(std::move(values));
  }
  return all;
}

class Opcodes : public testing::TestWithParam<std::string> {};

TEST_P(Opcodes, HaveTheInterpretersResults) {
  const std::vector<Sample> all = samples();
  ASSERT_GT(all.size(), 200u);
  vm::test::ModuleParts parts;
  parts.name = "m";
  parts.global_bytes = 16;
  parts.features = vm::kFeatureF32 | vm::kFeatureF64;
  for (size_t n = 0; n < all.size(); ++n) {
    parts.functions.push_back(function_of(all[n]));
    parts.exports.emplace_back(fmt::format("f{}", n), static_cast<int>(n));
  }
  const std::vector<uint8_t> module = parts.build();
  vm::test::Machine machine;
  machine.add(module);
  const std::string& parameter = GetParam();
  std::vector<Signature> signatures;
  for (const Sample& sample : all) signatures.push_back(signature_of(sample));
  CProgram program(module, parameter.substr(0, parameter.find(' ')), parameter.substr(parameter.find(' ')),
                   signatures);
  ASSERT_EQ(program.error(), "");
  for (size_t n = 0; n < all.size(); ++n) {
    const Sample& sample = all[n];
    for (const std::vector<uint64_t>& in : combinations(sample.arguments, 400)) {
      vm::test::Values arguments;
      for (size_t i = 0; i < in.size(); ++i) arguments.push_back(value(sample.arguments[i], in[i]));
      uint64_t out = 0;
      const int status = program.call(n, in.data(), &out);
      const auto expected = machine.call(fmt::format("f{}", n), arguments);
      std::string text(vm::info(sample.op).mnemonic());
      for (const uint64_t bits : in) text += fmt::format(" {:X}", bits);
      ASSERT_EQ(status, expected ? 0 : static_cast<int>(expected.error().code())) << text;
      if (!expected) continue;
      const uint64_t bits = expected->front().bits();
      // Which NaN arithmetic gives is the processor's choice, and the compiler's where it knows the operands.
      if (is_nan(sample.result, bits) && is_nan(sample.result, out)) continue;
      ASSERT_EQ(out, bits) << text;
    }
  }
}

std::vector<std::string> ways() {
  std::vector<std::string> all;
  for (const std::string& compiler : compilers())
    for (const char* options : {" -O0", " -O2"}) all.push_back(compiler + options);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Compilers, Opcodes, testing::ValuesIn(ways()), [](const auto& way) {
  std::string name = way.param;
  std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
  return name;
});

}  // namespace
}  // namespace halyard::aot::test
