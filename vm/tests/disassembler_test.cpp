// The output of the disassembler, and that assembling it preserves everything.
#include "vm/text/disassembler.h"

#include <filesystem>
#include <random>

#include "disassembler_testing.h"
#include "fixtures.h"
#include "module_builder.h"

namespace halyard::vm::test {
namespace {

std::vector<uint8_t> assembled(const std::string& text, uint32_t version = 0) {
  auto bytes = assemble(text, {version, "t.vmasm"});
  if (bytes) return std::move(*bytes);
  ADD_FAILURE() << bytes.error().text() << "\n" << text;
  return {};
}

std::string in_function(const std::string& body, const std::string& arguments = "") {
  return "vm.module @m\nvm.func @f(" + arguments + ") -> () {\n" + body + "  vm.return\n}\n";
}

// ---- The base language

// Expects that text in the order and form of the disassembler's output is printed unchanged.
void expect_unchanged(const std::string& text) { EXPECT_EQ(round_trip(assembled(text)), text); }

TEST(Disassembler, TextInItsOwnFormComesBackUnchanged) {
  expect_unchanged(
      "vm.module @m version 3 bytecode 16\n"
      "vm.requires ext_f64\n"
      "vm.state 24, 2\n"
      "vm.module_attr \"made by\" \"hand\"\n"
      "vm.dependency @hal 6\n"
      "vm.dependency @other 0 optional\n"
      "vm.type i32\n"
      "vm.type !vm.buffer\n"
      "vm.import @hal.devices.count cconv \"0v_i\"\n"
      "vm.import optional @other.f cconv \"\"\n"
      "vm.rodata[0] = \"some text\"\n"
      "vm.rodata[1] = 00ff\n"
      "vm.rodata[2] =\n"
      "vm.export @f\n"
      "vm.export @g = @f\n"
      "vm.func @f(%i0: i32, %i2:3: i64, %r0: !vm.ref<?>, %i4: f32, %i6:7: f64) -> (i32, f64) {\n"
      "  .debug_name \"inner\"\n"
      "  .attr \"b\" \"2\"\n"
      "  .attr \"a\" e\"with \\\"quotes\\\"\"\n"
      "  %i0 = vm.call @hal.devices.count()\n"
      "  %i0 = vm.import.resolved @other.f\n"
      "  %r1 = vm.const.ref.rodata 0  // \"some text\"\n"
      "  vm.br_table %i0 { default: ^bb1(%i0 -> %i4), 0: ^bb2, 1: ^bb1 }\n"
      "^bb1:\n"
      "  %r0 = vm.select.ref %i0 ? %R0 : %r1 -> !vm.buffer\n"
      "  vm.cond_br %i0, ^bb1, ^bb2(%R0 -> %r1, %i2 -> %i6)\n"
      "^bb2:\n"
      "  %i0, %i6:7 = vm.call @f(%i0, %i2:3, %R0, %i4, %i6:7)\n"
      "  vm.return %i0, %i6:7\n"
      "}\n"
      "vm.func @func_1() -> () {\n"
      "  vm.return\n"
      "}\n");
}

TEST(Disassembler, FormsOfInstructions) {
  expect_unchanged(
      "vm.module @m\n"
      "vm.state 16, 4\n"
      "vm.type i32\n"
      "vm.type !vm.buffer\n"
      "vm.type !vm.list<i32>\n"
      "vm.import @a.b cconv \"0rCiID_F\"\n"
      "vm.func @func_0() -> () {\n"
      "^bb0:\n"
      "  %r0 = vm.list.alloc %i0 : !vm.list<i32>\n"
      "  %r1 = vm.list.alloc %i0 : !vm.list<!vm.list<i32>>\n"
      "  %R2 = vm.list.get.ref %r0, %i1 : !vm.buffer\n"
      "  %i2:3 = vm.global.load.i64 .rwdata[8]\n"
      "  vm.global.store.i64 %i2:3, .rwdata[0]\n"
      "  %r3 = vm.global.load.ref .refs[3] : !vm.buffer\n"
      "  vm.global.store.indirect.ref %i0 : !vm.buffer, %R3\n"
      "  vm.buffer.store.i8 %i0, %r3, %i2:3\n"
      "  %i0 = vm.switch.i32 %i1[%i2, %i3] else %i4\n"
      "  %i6:7 = vm.switch.i64 %i1[] else %i2:3\n"
      "  %r0 = vm.switch.ref %i0[%R1, %r2] else %r3 -> !vm.buffer\n"
      "  %r0 = vm.cast.any.ref %R1 : !vm.ref<?> -> !vm.list<i32>\n"
      "  %i6:7 = vm.call.variadic @a.b segments[65535, 2](%r0, %i0, %i2:3, %i1, %i4:5)\n"
      "  vm.trace \"nothing\"\n"
      "  vm.trace \"something\", %i0, %R0\n"
      "  vm.discard.refs\n"
      "  vm.call.variadic.yieldable @a.b segments[65535, 0](%r0) -> ^bb1(%i6:7)\n"
      "^bb1:\n"
      "  vm.call.yieldable @func_0() -> ^bb0()\n"
      "^bb2:\n"
      "  vm.fail %i0, e\"line\\nline\\t\\\\ \\\"q\\\" \\x00\\xff\"\n"
      "}\n");
}

TEST(Disassembler, Constants) {
  const std::string text =
      "vm.module @m\n"
      "vm.func @func_0() -> () {\n"
      "  %i0 = vm.const.i32 -2147483648\n"
      "  %i0:1 = vm.const.i64 -9223372036854775808\n"
      "  %i0 = vm.const.f32 1.5\n"
      "  %i0 = vm.const.f32 -0\n"
      "  %i0 = vm.const.f32 inf\n"
      "  %i0 = vm.const.f32 -inf\n"
      "  %i0 = vm.const.f32 nan\n"
      "  %i0 = vm.const.f32 -nan\n"
      "  %i0 = vm.const.f32 bits(0x7FC00001)\n"
      "  %i0 = vm.const.f32 bits(0xFF800001)\n"
      "  %i0 = vm.const.f32 bits(0x00000001)\n"
      "  %i0 = vm.const.f32 bits(0x807FFFFF)\n"
      "  %i0 = vm.const.f32 1.1754944e-38\n"
      "  %i0:1 = vm.const.f64 0.1\n"
      "  %i0:1 = vm.const.f64 bits(0x7FF0000000000001)\n"
      "  %i0:1 = vm.const.f64 bits(0x000FFFFFFFFFFFFF)\n"
      "  vm.return\n"
      "}\n";
  expect_unchanged(text);
  // Arbitrary bits.
  std::mt19937_64 chance(20261121);
  std::string body;
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bits = chance();
    body += fmt::format("  %i0 = vm.const.f32 bits({:#x})\n  %i0:1 = vm.const.f64 bits({:#x})\n",
                        static_cast<uint32_t>(bits), bits * 0x9E3779B97F4A7C15u);
  }
  round_trip(assembled(in_function(body)));
}

TEST(Disassembler, OffsetsAreDroppedOnTheWayBack) {
  const auto file = assembled(in_function("  %i0 = vm.const.i32 7\n  vm.br ^bb1\n^bb1:\n"));
  const std::string text = disassembled(file, {.offsets = true});
  EXPECT_TRUE(contains(text, "[00000001]   %i0 = vm.const.i32 7\n")) << text;
  EXPECT_TRUE(contains(text, "[00000008]   vm.br ^bb1\n^bb1:\n[00000011]   vm.return\n")) << text;
  EXPECT_EQ(disassembled(assembled(text)), disassembled(file));
}

// Every opcode with existing operands, and with every MOVE bit set and cleared.
class OperandWriter {
 public:
  OperandWriter(CodeBuilder& code, bool moved) : code_(code), moved_(moved) {}

  void write(const Operand& operand) {
    const uint16_t reg_number = next_;
    next_ = static_cast<uint16_t>(next_ + 2);
    switch (operand.kind) {
      case OperandKind::reg:
        code_.u16(operand.bank == Bank::ref ? reference(reg_number) : reg_number);
        break;
      case OperandKind::reg_list:
        if (operand.bank == Bank::ref) {
          code_.list({reference(2), reference(4)});
        } else if (operand.bank == Bank::any) {
          code_.list({reference(2), 3, 6});
        } else {
          code_.list({2, 4});
        }
        break;
      case OperandKind::immediate:
        if (operand.bank == Bank::i64 || operand.bank == Bank::f64) {
          code_.u64(0x3FF123456789ABCD);
        } else {
          code_.u32(0x3FC12345);
        }
        break;
      case OperandKind::global_bytes:
        code_.u32(8);
        break;
      case OperandKind::func:
        code_.u32(kImportBit);
        break;
      case OperandKind::global_ref:
      case OperandKind::rodata:
      case OperandKind::type:
        code_.u32(1);
        break;
      case OperandKind::string:
        code_.string("a \"b\"");
        break;
      case OperandKind::block:
        code_.u32(0);
        break;
      case OperandKind::remap:
        code_.remap({{1, 2}, {reference(3), ref(4)}, {ref(4), reference(5)}});
        break;
      case OperandKind::cases:
        code_.u16(2);
        code_.u32(0).remap({{1, 2}});
        code_.u32(0).remap({});
        break;
      case OperandKind::u16_list:
        code_.list({0, 65535, 7});
        break;
    }
  }

 private:
  uint16_t reference(uint16_t ordinal) const { return moved_ ? moved(ordinal) : ref(ordinal); }

  CodeBuilder& code_;
  bool moved_;
  uint16_t next_ = 0;
};

TEST(Disassembler, EveryInstruction) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (info(op).flags & (MARKER | PREFIX)) continue;
    SCOPED_TRACE(info(op).mnemonic());
    for (const bool moved : {false, true}) {
      CodeBuilder code;
      code.block().op(op);
      OperandWriter writer(code, moved);
      for (size_t k = 0; k < info(op).operand_count; ++k) writer.write(info(op).operands[k]);
      if (!info(op).terminator()) code.ret();
      ModuleParts parts = one_function({.code = code.bytes(), .values = 16, .refs = 16, .features = 3});
      parts.features = 3;
      parts.types = {"i32", "!vm.buffer"};
      parts.imports = {{"a.b", "0v_v"}};
      parts.rodata = {{{1, 2, 3}}, {{4}}};
      parts.global_bytes = 16;
      parts.global_refs = 2;
      const std::string text = round_trip(parts.build());
      EXPECT_FALSE(contains(text, ".bytes")) << text;
      EXPECT_TRUE(contains(text, std::string("vm.") + std::string(info(op).mnemonic()))) << text;
    }
  }
}

// ---- Parts of modules that the base language cannot express

TEST(Disassembler, NamesOfAnyBytes) {
  const std::string odd = "a \"b\" \\ \xC3\xA9 \xFF\n#//@";
  ModuleParts parts;
  parts.name = odd;
  parts.attributes = {{odd, odd}, {"plain", "value"}};
  parts.types = {"!" + odd, "!plain.type<a, b>", "!unbalanced<", "!with<#>", "!", "!\"\""};
  parts.imports = {{odd + ".x", odd}, {"a:0", "0v_v"}};
  parts.dependencies = {{odd, 1}};
  parts.debug_names = {odd + "debug", odd};
  parts.rodata = {{{'"', 'x', '\n'}}, {{0xFF, 'e'}}};
  CodeBuilder code;
  code.block().op(Op::call).u32(kImportBit | 1).list({}).list({});
  for (uint32_t type = 0; type < 6; ++type) code.op(Op::list_alloc).u32(type).u16(0).u16(ref(0));
  for (uint32_t type = 0; type < 6; ++type) code.op(Op::list_get_ref, {ref(0), 0}).u32(type).u16(ref(1));
  code.op(Op::fail).u16(0).string(odd);
  parts.functions = {{.code = code.bytes(), .values = 1, .refs = 2}, {}};
  parts.exports = {{odd, 1}, {"x", 0}};
  const std::string text = round_trip(parts.build());
  EXPECT_TRUE(contains(text, "vm.call @\"a:0\"()")) << text;
  EXPECT_TRUE(contains(text, ": !vm.list<!plain.type<a, b>>\n")) << text;
  EXPECT_TRUE(contains(text, ": type[2]\n")) << text;
  EXPECT_FALSE(contains(text, ".bytes")) << text;
}

TEST(Disassembler, NamesThatAreThereTwice) {
  ModuleParts parts;
  parts.types = {"!vm.buffer", "i32", "!vm.buffer"};
  parts.imports = {{"a.b", "0i_v"}, {"a.b", "0v_v"}, {"f", "0v_v"}, {"test.g", "0v_v"}};
  parts.dependencies = {{"a", 1}, {"a", 2}};
  parts.attributes = {{"k", "1"}, {"k", "2"}, {"", ""}};
  parts.debug_names = {"twice", "twice", "f", ""};
  CodeBuilder code;
  code.block();
  for (uint32_t import = 1; import < 4; ++import)
    code.op(Op::call).u32(kImportBit | import).list({}).list({});
  for (uint32_t function = 0; function < 4; ++function) code.op(Op::call).u32(function).list({}).list({});
  code.op(Op::import_resolved).u32(kImportBit | 1).u16(0);
  code.op(Op::list_get_ref, {ref(0), 0}).u32(2).u16(ref(1)).ret();
  parts.functions = {{.code = code.bytes(), .values = 1, .refs = 2}, {}, {}, {}};
  parts.exports = {{"f", 1}, {"f", 2}, {"func_3", 0}, {"g", 2}};
  const std::string text = round_trip(parts.build());
  for (const char* part : {"vm.type[2] !vm.buffer", "vm.import[1] @a.b", "vm.dependency[1] @a 2",
                           "vm.module_attr[1] \"k\" \"2\"", "vm.export[1] @f = @g", "vm.call import[1]()",
                           "vm.call import[2]()", "vm.call @test.g()", "vm.call @func_3()",
                           "vm.call @func_3_()", "vm.import.resolved import[1]", ": type[2]"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_FALSE(contains(text, ".bytes")) << text;
}

TEST(Disassembler, FlagsAndNumbers) {
  ModuleParts parts;
  parts.version = UINT32_MAX;
  for (const uint32_t flags : {0u, 1u, 2u, 3u, 4u, UINT32_MAX}) {
    parts.dependencies.push_back({fmt::format("d{}", flags), UINT32_MAX, flags});
    parts.imports.push_back({fmt::format("m.f{}", flags), "0v_v", flags});
  }
  parts.imports.push_back({"without.signature", std::nullopt});
  parts.features = kFeatureYield;
  parts.global_bytes = INT32_MAX;
  parts.global_refs = INT32_MAX;
  parts.functions = {{.values = 100, .refs = 50, .features = kFeatureUnwind | kFeatureF64}};
  auto file = parts.build();
  const std::string text = round_trip(file);
  for (const char* part :
       {"vm.dependency @d0 4294967295 flags 0\n", "@d1 4294967295\n", "@d2 4294967295 optional\n",
        "@d3 4294967295 flags 3\n", "vm.import optional @m.f2 cconv \"0v_v\"\n",
        "@m.f4294967295 cconv \"0v_v\" flags 4294967295\n", "@without.signature cconv \"\"\n",
        "vm.requires yield\n", "  .requires ext_f64, unwind\n", "  .registers 100, 50\n"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

TEST(Disassembler, ConventionsThatTheSignatureDoesNotGive) {
  const char* conventions[] = {"",     "0",     "0_",    "0v",   "0i",   "0i_",
                               "0v_v", "0vi_v", "0iv_v", "0I_I", "0ri_", "0CiD_v"};
  for (const char* convention : conventions) {
    SCOPED_TRACE(convention);
    CodeBuilder code;
    code.block().ret({2, ref(0)});
    ModuleParts parts =
        one_function({.code = code.bytes(), .convention = convention, .values = 4, .refs = 1});
    const std::string text = round_trip(parts.build());
    const bool derived = std::string_view(convention) == "0v_v" || std::string_view(convention) == "0I_I";
    EXPECT_EQ(contains(text, ".cconv \"" + std::string(convention) + "\""), !derived) << text;
    EXPECT_EQ(contains(text, ".bytes"), contains(convention, "C")) << text;
  }
  ModuleParts parts = one_function({.convention = std::nullopt});
  EXPECT_TRUE(contains(round_trip(parts.build()), ".cconv \"\""));
}

TEST(Disassembler, RegistersAboveTheStatedCount) {
  // Rounded up to a power of two: verifier-and-execution.md, rule 3.1.3.
  CodeBuilder code;
  code.block().op(Op::const_i32_zero).u16(7).op(Op::const_ref_zero).u16(ref(3)).ret();
  const std::string text = round_trip(one_function({.code = code.bytes(), .values = 5, .refs = 3}).build());
  EXPECT_TRUE(contains(text, "  .registers 5, 3\n")) << text;
  EXPECT_FALSE(contains(text, ".bytes")) << text;
}

TEST(Disassembler, FunctionsWithoutAnEnd) {
  CodeBuilder code;
  code.block().op(Op::br).u32(0).remap({});
  const std::string text = round_trip(one_function({.code = code.bytes()}).build());
  EXPECT_TRUE(contains(text, "  .endless\n^bb0:\n  vm.br ^bb0\n")) << text;
}

TEST(Disassembler, AttributesAsTheyAre) {
  ModuleParts parts = one_function({.attributes = {{"z", "1"}, {"a", "2"}, {"a", "3"}, {"", ""}}});
  parts.functions.push_back({.attributes = {{"of no export", "x"}}});
  const std::string text = round_trip(parts.build());
  EXPECT_TRUE(
      contains(text, "  .attr \"z\" \"1\"\n  .attr \"a\" \"2\"\n  .attr \"a\" \"3\"\n  .attr \"\" \"\"\n"))
      << text;
}

TEST(Disassembler, ModulesWithoutFunctions) {
  ModuleParts parts;
  parts.rodata = {{{1}}};
  parts.global_bytes = 4;
  EXPECT_EQ(round_trip(parts.build()), "vm.module @test\nvm.state 4, 0\nvm.empty\nvm.rodata[0] = 01\n");
}

TEST(Disassembler, ConstantsInTheFileAndInTheFlatBuffer) {
  std::vector<uint8_t> bytes(100);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  ModuleParts parts = one_function({});
  parts.rodata = {{bytes, true}, {bytes, false}, {{}, false}, {{'t', 'e', 'x', 't'}, false}};
  const std::string text = round_trip(parts.build());
  EXPECT_TRUE(contains(text, "vm.rodata[1] = hex {  // 100 bytes\n  00070e15")) << text;
  EXPECT_TRUE(contains(text, "vm.rodata[2] =\n")) << text;
  EXPECT_TRUE(contains(text, "vm.rodata[3] = \"text\"\n")) << text;
}

TEST(Disassembler, NestedModules) {
  ModuleParts inner = one_function({});
  inner.name = "inner";
  inner.bytecode_version = 15u << 16;
  inner.rodata = {{one_function({}).build(), false}};
  ModuleParts outer = one_function({});
  outer.rodata = {{inner.build(), false}, {{'I', 'R', 'E', 'E'}}};
  const std::string text = round_trip(outer.build());
  EXPECT_TRUE(contains(text,
                       "vm.rodata[0] = module {\n"
                       "  vm.module @inner bytecode 15\n"
                       "  vm.rodata[0] = module {\n"
                       "    vm.module @test bytecode 17\n"
                       "    vm.export @main\n"
                       "    vm.func @main() -> () {\n"
                       "      vm.return\n"
                       "    }\n"
                       "  }\n"
                       "  vm.export @main\n"))
      << text;
  // The deepest nesting that text allows; deeper modules stay bytes.
  for (int i = 0; i < 9; ++i) {
    ModuleParts around = one_function({});
    around.rodata = {{outer.build(), true}};
    outer = around;
  }
  EXPECT_TRUE(contains(round_trip(outer.build()), " = hex {"));
}

TEST(Disassembler, TypesThatNobodyHas) {
  ModuleParts parts = one_function({});
  parts.types = {"!some.device.thing", "!hal.buffer"};
  EXPECT_TRUE(contains(round_trip(parts.build()), "vm.type !some.device.thing\n"));
  parts.types = {"nothing"};
  EXPECT_FAILS(NOT_FOUND, "'nothing'", disassemble(Bytes::copy(parts.build()), {}));
}

// ---- Functions that cannot run

TEST(Disassembler, WhatCannotRunIsGivenAsBytesWithTheReason) {
  CodeBuilder good;
  good.block().op(Op::const_i32).u32(5).u16(0).ret();
  auto bad_opcode = good.bytes();
  bad_opcode[8] = 0xEE;
  auto cut = good.bytes();
  cut.resize(4);
  CodeBuilder far;
  far.block().op(Op::br).u32(0x1234).remap({});
  CodeBuilder wrong;
  wrong.block()
      .op(Op::call)
      .u32(kImportBit | 99)
      .list({})
      .list({})
      .op(Op::list_alloc)
      .u32(7)
      .u16(0)
      .u16(1)
      .ret();
  struct Case {
    FunctionParts function;
    std::string reason;  // part of the comment
    std::string read;    // the readable part
  };
  const Case cases[] = {
      {{.code = bad_opcode, .values = 1}, "byte 0xEE is not an opcode", "//     %i0 = vm.const.i32 5\n"},
      {{.code = cut, .values = 1}, "reaches past the end", ".bytes 790d0500\n"},
      {{.code = far.bytes()}, "a branch to pc 0x1234", "vm.br ^pc1234\n"},
      {{.code = wrong.bytes()}, "import 99 does not exist", "vm.call import[99]()\n"},
      {{.code = good.bytes(), .values = 0x7FFF, .refs = 0x3FFF},
       "RESOURCE_EXHAUSTED",
       "  .registers 32767, 16383\n"},
      {{.code = good.bytes(), .values = 1, .blocks = 7}, "the function states 7 blocks", "  .blocks 7\n"},
      {{.code = good.bytes(), .values = 1, .features = 0x80000001},
       "features 0x80000000",
       "  .requires ext_f32, 0x80000000\n"},
      {{.code = good.bytes(), .convention = "1i_i"}, "version '1'", ".cconv \"1i_i\"\n"},
      {{.code = good.bytes(), .convention = "0" + std::string(20000, 'i')}, "the arguments of", "() -> () {"},
      {{.code = {0}}, "", ".bytes 00\n"},
  };
  for (const Case& entry : cases) {
    SCOPED_TRACE(entry.reason);
    const std::string text = round_trip(one_function(entry.function).build());
    EXPECT_TRUE(contains(text, "// cannot run: ")) << text;
    EXPECT_TRUE(contains(text, entry.reason)) << text;
    EXPECT_TRUE(contains(text, entry.read)) << text;
  }
}

TEST(Disassembler, BytesThatNothingReadsAreKept) {
  auto odd_pad = CodeBuilder().block().op(Op::const_ref_zero).u16(ref(0)).ret().bytes();
  ASSERT_EQ(odd_pad, (std::vector<uint8_t>{0x79, 0x10, 0, 0x80, 0x5A, 0, 0, 0}));
  odd_pad[5] = 0x99;
  auto trailing = CodeBuilder().block().ret().bytes();
  trailing.push_back(0x42);
  for (const auto& code : {odd_pad, trailing}) {
    const std::string text = round_trip(one_function({.code = code, .refs = 1}).build());
    EXPECT_TRUE(contains(text, "// given as bytes")) << text;
    EXPECT_TRUE(contains(text, "//     vm.return\n")) << text;
  }
}

TEST(Disassembler, ReasonsStayInTheirComment) {
  ModuleParts parts = one_function({.code = {0x79, 0xEE, 0, 0}});
  parts.exports = {{"x\nvm.nonsense", 0}};
  round_trip(parts.build());
}

// ---- Limits and damage

TEST(Disassembler, LongTextIsRefused) {
  // One string that is referenced often: a small file, but more text than can be assembled.
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString(std::string(1 << 20, 'x'));
  std::vector<flatbuffers::Offset<schema::Attribute>> attributes(
      300, schema::CreateAttribute(builder, text, text));
  const auto attribute_vector = builder.CreateVector(attributes);
  const auto name = builder.CreateString("m");
  schema::BytecodeModuleBuilder module(builder);
  module.add_name(name);
  module.add_attributes(attribute_vector);
  module.add_bytecode_version(17 << 16);
  schema::FinishSizePrefixedBytecodeModuleBuffer(builder, module.Finish());
  const std::vector<uint8_t> file(builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize());
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "268435456", disassemble(Bytes::copy(file), {}));
}

TEST(Disassembler, WhatIsNoModuleIsAnError) {
  EXPECT_FAILS(INVALID_ARGUMENT, "empty", disassemble(Bytes::copy({}), {}));
  const auto file = one_function({}).build();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto result = disassemble(Bytes::copy(std::span(file).first(size)), {});
    EXPECT_FALSE(result) << size;
  }
}

std::vector<std::filesystem::path> files(const std::filesystem::path& folder, std::string_view extension) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == extension) paths.push_back(entry.path());
  std::ranges::sort(paths);
  return paths;
}

// Whichever bytes are changed, a module that still loads is preserved.
TEST(Disassembler, DamagedModulesComeBackIfTheyLoad) {
  std::mt19937 chance(20261121);
  int loaded = 0;
  int as_bytes = 0;
  for (const auto& path : files(std::filesystem::path(HALYARD_SOURCE_DIR) / "examples", ".vmasm")) {
    SCOPED_TRACE(path.filename().string());
    const auto whole = assembled(file_text(path));
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) {
      auto damaged = whole;
      for (uint32_t k = chance() % 4; k < 4; ++k) damaged[chance() % damaged.size()] ^= 1u << (chance() % 8);
      if (!ModuleView::open(Bytes::copy(damaged))) continue;
      ++loaded;
      as_bytes += contains(round_trip(damaged), ".bytes ");
    }
  }
  EXPECT_GT(loaded, 100);
  EXPECT_GT(as_bytes, 20);
}

TEST(Disassembler, ModulesOfTheFixtures) {
  if (!std::filesystem::exists(fixtures())) GTEST_SKIP() << "no fixtures in " << fixtures();
  const auto modules = files(fixtures(), ".vmfb");
  EXPECT_GE(modules.size(), 150u);
  for (const auto& path : modules) {
    if (contains(path.string(), "/attacks/")) continue;  // not made by a compiler
    SCOPED_TRACE(path.string());
    const std::string file = file_text(path);
    const std::string text = round_trip({file.begin(), file.end()});
    EXPECT_FALSE(contains(text, ".bytes ")) << "does not verify";
  }
}

TEST(Disassembler, TextsOfTheFixtures) {
  if (!std::filesystem::exists(fixtures())) GTEST_SKIP() << "no fixtures in " << fixtures();
  int count = 0;
  for (const auto& path : files(fixtures(), ".vmasm")) {
    const std::string text = file_text(path);
    if (contains(text, "<bytes of")) continue;  // a placeholder for bytes that are not in the text
    SCOPED_TRACE(path.string());
    round_trip(assembled(text));
    ++count;
  }
  EXPECT_GE(count, 90);
}

}  // namespace
}  // namespace halyard::vm::test
