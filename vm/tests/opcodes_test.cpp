// The opcode table: it is complete and consistent, and instructions are read according to it.
#include "vm/format/opcodes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "module_builder.h"
#include "vm/format/bytecode_reader.h"
#include "vm/format/opcode_traits.h"

namespace halyard::vm::test {
namespace {

constexpr uint32_t kAllFeatures = kFeatureF32 | kFeatureF64;

const OpInfo* find(std::string_view mnemonic) {
  for (const OpInfo& op : kOps)
    if (op.mnemonic() == mnemonic) return &op;
  return nullptr;
}

TEST(Opcodes, SetSizes) {
  std::map<OpSet, size_t> sizes;
  for (const OpInfo& op : kOps) ++sizes[op.set];
  EXPECT_EQ(sizes[OpSet::CORE], 0x89u + 2);  // 0x00 to 0x88 and the two prefixes
  EXPECT_EQ(sizes[OpSet::F32], 0x3Eu);
  EXPECT_EQ(sizes[OpSet::F64], 0x40u);
  EXPECT_EQ(kOpCount, 265u);
}

TEST(Opcodes, EverySetIsDense) {
  const auto set = [](OpSet which) { return kOpBySetAndByte[static_cast<size_t>(which)]; };
  for (size_t byte = 0; byte < 256; ++byte) {
    EXPECT_EQ(set(OpSet::CORE)[byte] != Op::kCount, byte <= 0x88 || byte == 0xE0 || byte == 0xE1) << byte;
    EXPECT_EQ(set(OpSet::F32)[byte] != Op::kCount, byte < 0x3E) << byte;
    EXPECT_EQ(set(OpSet::F64)[byte] != Op::kCount, byte < 0x40) << byte;
  }
}

TEST(Opcodes, MnemonicsAreUnique) {
  std::set<std::string_view> names;
  for (const OpInfo& op : kOps) EXPECT_TRUE(names.insert(op.mnemonic()).second) << op.mnemonic();
}

TEST(Opcodes, Since) {
  for (const OpInfo& op : kOps) {
    const bool core = op.set == OpSet::CORE;
    const int since = core && (op.byte == 0x87 || op.byte == 0x88)   ? 17
                      : core && (op.byte == 0x85 || op.byte == 0x86) ? 16
                                                                     : 15;
    EXPECT_EQ(op.since, since) << op.mnemonic();
  }
}

TEST(Opcodes, Flags) {
  const std::set<std::string_view> terminators = {
      "br",         "cond_br", "return",   "fail",           "yield",
      "cond_break", "break",   "br_table", "call.yieldable", "call.variadic.yieldable"};
  for (const OpInfo& op : kOps) {
    EXPECT_EQ(op.terminator(), terminators.contains(op.mnemonic())) << op.mnemonic();
    EXPECT_EQ((op.flags & MARKER) != 0, op.mnemonic() == "block") << op.mnemonic();
    EXPECT_EQ((op.flags & PREFIX) != 0, op.byte >= 0xE0) << op.mnemonic();
  }
  EXPECT_EQ(info(Op::block).byte, 0x79);
}

TEST(Opcodes, NamesAgreeWithOperands) {
  for (const OpInfo& op : kOps) {
    EXPECT_LE(op.operand_count, kMaxOperands);
    std::set<std::string_view> names;
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      EXPECT_TRUE(names.insert(operand.name()).second) << op.mnemonic() << ' ' << operand.name();
      EXPECT_EQ(operand.kind == OperandKind::reg && operand.writes, operand.name() == "result")
          << op.mnemonic();
      // Extension sets use their own type in some operand.
      if (op.set != OpSet::CORE && operand.kind == OperandKind::immediate) {
        EXPECT_EQ(operand.bank, op.set == OpSet::F32 ? Bank::f32 : Bank::f64) << op.mnemonic();
      }
    }
  }
}

TEST(Opcodes, GlobalsStandBesideTheirRegister) {  // the verifier takes the size from it
  for (const OpInfo& op : kOps) {
    if (op.operand_count == 0 || op.operands[0].kind != OperandKind::global_bytes) continue;
    ASSERT_EQ(op.operand_count, 2) << op.mnemonic();
    EXPECT_EQ(op.operands[1].kind, OperandKind::reg) << op.mnemonic();
    EXPECT_TRUE(op.mnemonic().starts_with("global.")) << op.mnemonic();
  }
}

TEST(Opcodes, MoveIsForRefs) {
  for (const OpInfo& op : kOps) {
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      if (!operand.move) continue;
      EXPECT_TRUE(operand.bank == Bank::ref || operand.bank == Bank::any)
          << op.mnemonic() << ' ' << operand.name();
    }
  }
  EXPECT_TRUE(find("assign.ref")->operands[0].move);
  EXPECT_FALSE(find("cmp.eq.ref")->operands[0].move);
  EXPECT_FALSE(find("call")->operands[2].move);
}

// Compares TRAITS, SAME_BITS and NEGATED in opcodes.inc with the operands.
TEST(Opcodes, TraitsAgreeWithOperands) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const OpInfo& row = kOps[i];
    const auto operand = [&](size_t index) { return row.operands[index]; };
    const bool lists_results = row.operand_count > 0 &&
                               operand(row.operand_count - 1u).kind == OperandKind::reg_list &&
                               operand(row.operand_count - 1u).writes;
    EXPECT_EQ(has_trait(op, CALLS), lists_results) << row.mnemonic();
    if (has_trait(op, SUSPENDS)) {
      EXPECT_TRUE(row.terminator()) << row.mnemonic();
    }
    if (has_trait(op, CALLS)) {
      EXPECT_EQ(has_trait(op, SUSPENDS), row.terminator()) << row.mnemonic();
    }
    EXPECT_EQ(has_trait(op, CONSTANT), row.mnemonic().starts_with("const.i")) << row.mnemonic();
    EXPECT_EQ(has_trait(op, PICKS), row.mnemonic().starts_with("switch.")) << row.mnemonic();
    EXPECT_EQ(has_trait(op, SHIFTS), row.mnemonic().starts_with("sh")) << row.mnemonic();
    if (has_trait(op, COMMUTES)) {
      EXPECT_EQ(operand(0).bank, operand(1).bank) << row.mnemonic();
    }
    if (has_trait(op, TAKES)) {
      const Operand& result = operand(row.operand_count - 1u);
      EXPECT_TRUE(result.writes && result.move && result.bank == Bank::ref) << row.mnemonic();
    }
    for (const Op other : {kSameBits[i], kNegated[i]}) {
      if (other == Op::kCount || other == op) continue;
      ASSERT_EQ(info(other).operand_count, row.operand_count) << row.mnemonic();
      for (size_t k = 0; k < row.operand_count; ++k)
        EXPECT_EQ(is_wide(info(other).operands[k].bank), is_wide(operand(k).bank)) << row.mnemonic();
    }
  }
}

TEST(Opcodes, ElementsAgreeWithMnemonics) {
  size_t count = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    const OpInfo& row = kOps[i];
    std::string_view name = row.mnemonic();
    Elements expected;
    for (const auto& [prefix, access] :
         {std::pair("buffer.load.", ElementAccess::load), std::pair("buffer.store.", ElementAccess::store),
          std::pair("buffer.fill.", ElementAccess::fill)}) {
      if (!name.starts_with(prefix)) continue;
      name.remove_prefix(std::string_view(prefix).size() + 1);  // and the kind of number
      expected = {access, static_cast<uint8_t>(std::stoi(std::string(name)) / 8)};
      EXPECT_EQ(row.operands[0].bank, Bank::ref) << row.mnemonic();
      ++count;
    }
    const Elements found = elements_of(static_cast<Op>(i));
    EXPECT_EQ(found.access, expected.access) << row.mnemonic();
    EXPECT_EQ(found.bytes, expected.bytes) << row.mnemonic();
  }
  EXPECT_EQ(count, 20u);
}

// An instruction with the shortest operands.
std::vector<uint8_t> shortest(const OpInfo& op) {
  CodeBuilder code;
  code.op(static_cast<Op>(&op - kOps.data()));
  for (size_t i = 0; i < op.operand_count; ++i) {
    const Operand& operand = op.operands[i];
    const bool wide = operand.bank == Bank::i64 || operand.bank == Bank::f64;
    switch (operand.kind) {
      case OperandKind::reg:
        code.u16(operand.bank == Bank::ref ? kRefBit : 0);
        break;
      case OperandKind::immediate:
        wide ? code.u64(1) : code.u32(1);
        break;
      case OperandKind::string:
        code.string("");
        break;
      case OperandKind::cases:
        code.u16(0);
        break;
      case OperandKind::remap:
        code.remap({});
        break;
      case OperandKind::reg_list:
      case OperandKind::u16_list:
        code.list({});
        break;
      default:
        code.u32(0);
        break;
    }
  }
  return code.bytes();
}

TEST(ReadInstruction, EveryOpcodeOfEveryVersion) {
  for (const OpInfo& op : kOps) {
    if (op.flags & PREFIX) continue;
    const std::vector<uint8_t> code = shortest(op);
    for (uint32_t version = 15; version <= 17; ++version) {
      const auto instruction = read_instruction(code, 0, version, kAllFeatures);
      if (version < op.since) {
        EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("exists since bytecode {}", op.since), instruction);
        continue;
      }
      ASSERT_TRUE(succeeds(instruction)) << op.mnemonic();
      EXPECT_EQ(&info(instruction->op), &op);
      EXPECT_EQ(instruction->pc, 0u);
      EXPECT_EQ(instruction->next_pc, code.size()) << op.mnemonic();
      for (size_t size = 0; size < code.size(); ++size)
        EXPECT_FAILS(OUT_OF_RANGE, "",
                     read_instruction(std::span(code).first(size), 0, version, kAllFeatures))
            << op.mnemonic() << ' ' << size;
    }
  }
}

TEST(ReadInstruction, UnknownOpcodes) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const int prefix : {-1, 0xE0, 0xE1}) {
      const OpSet set = prefix < 0 ? OpSet::CORE : prefix == 0xE0 ? OpSet::F32 : OpSet::F64;
      if (kOpBySetAndByte[static_cast<size_t>(set)][static_cast<size_t>(byte)] != Op::kCount) continue;
      std::vector<uint8_t> code(64, 0);
      if (prefix >= 0) code[0] = static_cast<uint8_t>(prefix);
      code[prefix >= 0] = static_cast<uint8_t>(byte);
      EXPECT_FAILS(INVALID_ARGUMENT, "an opcode", read_instruction(code, 0, 17, kAllFeatures));
    }
  }
}

TEST(ReadInstruction, ExtensionSetsNeedTheirFeature) {
  const std::vector<uint8_t> f32 = CodeBuilder().op(Op::add_f32, {0, 1, 2}).bytes();
  const std::vector<uint8_t> f64 = CodeBuilder().op(Op::add_f64, {0, 2, 4}).bytes();
  EXPECT_OK(read_instruction(f32, 0, 15, kFeatureF32));
  EXPECT_OK(read_instruction(f64, 0, 15, kFeatureF64));
  EXPECT_FAILS(INVALID_ARGUMENT, "EXT_F32", read_instruction(f32, 0, 17, ~uint32_t{kFeatureF32}));
  EXPECT_FAILS(INVALID_ARGUMENT, "EXT_F64", read_instruction(f64, 0, 17, ~uint32_t{kFeatureF64}));
}

TEST(ReadInstruction, ListsStartAtEvenPcs) {
  // isa.md, 2.2, with the branch at an odd and at an even pc.
  for (const uint32_t start : {0u, 1u}) {
    CodeBuilder code;
    if (start == 1) code.u8(0xAA);
    code.op(Op::br).u32(0x18).remap({{2, 0}, {moved(1), ref(0)}});
    const auto br = ASSERT_VALUE(read_instruction(code.bytes(), start, 15, 0));
    EXPECT_EQ(br.pc, start);
    EXPECT_EQ(br.next_pc, 16u);  // 1 + 4 + 1 of padding + 2 + 8, or without the padding from pc 1
    EXPECT_EQ(br.operands[0].index, 0x18u);
    ASSERT_EQ(br.operands[1].remap.size(), 2);
    EXPECT_EQ(br.operands[1].remap[0].source, 2);
    EXPECT_EQ(br.operands[1].remap[0].destination, 0);
    EXPECT_EQ(br.operands[1].remap[1].source, 0xC001);
    EXPECT_EQ(br.operands[1].remap[1].destination, 0x8000);
  }
}

TEST(ReadInstruction, Immediates) {
  const std::vector<uint8_t> narrow = CodeBuilder().op(Op::const_i32).u32(0xFFFFFFFE).u16(3).bytes();
  const std::vector<uint8_t> wide = CodeBuilder().op(Op::const_f64).u64(0x0123456789ABCDEF).u16(4).bytes();
  const auto i32 = ASSERT_VALUE(read_instruction(narrow, 0, 15, 0));
  EXPECT_EQ(i32.operands[0].immediate, 0xFFFFFFFEu);
  EXPECT_EQ(i32.operands[1].reg, 3);
  const auto f64 = ASSERT_VALUE(read_instruction(wide, 0, 15, kFeatureF64));
  EXPECT_EQ(f64.op, Op::const_f64);
  EXPECT_EQ(f64.operands[0].immediate, 0x0123456789ABCDEFu);
  EXPECT_EQ(f64.operands[1].reg, 4);
}

TEST(ReadInstruction, VariadicCall) {
  // calling-convention.md, section 5: the op at pc 42.
  CodeBuilder code;
  for (int i = 0; i < 42; ++i) code.u8(0);
  code.op(Op::call_variadic).u32(kImportBit).list({0xFFFF, 2}).list({moved(3), 5, 6, 8, 10}).list({ref(1)});
  const std::vector<uint8_t> expected = {0x59, 0,    0, 0, 0x80, 0, 2, 0, 0xFF, 0xFF, 2, 0, 5, 0,
                                         3,    0xC0, 5, 0, 6,    0, 8, 0, 10,   0,    1, 0, 1, 0x80};
  ASSERT_EQ(std::vector<uint8_t>(code.bytes().begin() + 42, code.bytes().end()), expected);
  const auto call = ASSERT_VALUE(read_instruction(code.bytes(), 42, 15, 0));
  EXPECT_EQ(call.operands[0].index, kImportBit);
  ASSERT_EQ(call.operands[1].regs.size(), 2);
  EXPECT_EQ(call.operands[1].regs[0], 0xFFFF);
  EXPECT_EQ(call.operands[1].regs[1], 2);
  ASSERT_EQ(call.operands[2].regs.size(), 5);
  EXPECT_EQ(call.operands[2].regs[0], 0xC003);
  EXPECT_EQ(call.operands[2].regs[4], 10);
  ASSERT_EQ(call.operands[3].regs.size(), 1);
  EXPECT_EQ(call.operands[3].regs[0], 0x8001);
  EXPECT_EQ(call.next_pc, code.pc());
}

TEST(ReadInstruction, Strings) {
  const std::vector<uint8_t> code = CodeBuilder().op(Op::fail).u16(3).string("odd").bytes();
  const auto fail = ASSERT_VALUE(read_instruction(code, 0, 15, 0));
  EXPECT_EQ(fail.operands[1].string, "odd");
  EXPECT_EQ(fail.next_pc, 8u);
}

TEST(ReadInstruction, Cases) {
  for (const uint32_t start : {0u, 1u}) {
    CodeBuilder code;
    if (start == 1) code.u8(0xAA);
    code.op(Op::br_table).u16(5).u32(100).remap({{1, 2}});
    code.u16(3).u32(200).remap({{3, 4}, {5, 6}}).u32(300).remap({}).u32(400).remap({{ref(7), ref(8)}});
    const auto table = ASSERT_VALUE(read_instruction(code.bytes(), start, 15, 0));
    EXPECT_EQ(table.next_pc, code.pc());
    EXPECT_EQ(table.operands[1].index, 100u);
    ASSERT_EQ(table.operands[3].cases.size(), 3);
    std::vector<uint32_t> targets;
    std::vector<uint16_t> registers;
    for (const CaseEntry entry : table.operands[3].cases) {
      targets.push_back(entry.target);
      for (size_t i = 0; i < entry.remap.size(); ++i) {
        registers.push_back(entry.remap[i].source);
        registers.push_back(entry.remap[i].destination);
      }
    }
    EXPECT_EQ(targets, (std::vector<uint32_t>{200, 300, 400}));
    EXPECT_EQ(registers, (std::vector<uint16_t>{3, 4, 5, 6, ref(7), ref(8)}));
  }
}

TEST(ReadInstruction, PcPastTheEnd) {
  const std::vector<uint8_t> code = {0x79};
  for (const uint32_t pc : {1u, 2u, 0xFFFFFFFFu})
    EXPECT_FAILS(OUT_OF_RANGE, "the function has 1 bytes", read_instruction(code, pc, 17, 0));
  EXPECT_FAILS(OUT_OF_RANGE, "has 0 bytes", read_instruction({}, 0, 17, 0));
}

TEST(ReadInstruction, ALastByteIsNotLookedAt) {
  const std::vector<uint8_t> code(3);
  EXPECT_TRUE(has_instruction(code, 0));
  EXPECT_TRUE(has_instruction(code, 1));
  EXPECT_FALSE(has_instruction(code, 2));
  EXPECT_FALSE(has_instruction(code, 0xFFFFFFFF));
  EXPECT_FALSE(has_instruction({}, 0));
}

}  // namespace
}  // namespace halyard::vm::test
