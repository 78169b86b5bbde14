// Verification: for each rule of verifier-and-execution.md, section 3, a function that breaks only that rule.
#include "vm/verify/verifier.h"

#include <gtest/gtest.h>

#include "module_builder.h"

namespace halyard::vm::test {
namespace {

constexpr uint16_t kNoRegister = 0x7FFF;

Result<> verify(const ModuleParts& parts, uint32_t function = 0) {
  const auto module = load(parts.build());
  if (!module) {
    ADD_FAILURE() << "does not load: " << module.error().text();
    return std::unexpected(module.error());
  }
  return verify_function(**module, function);
}

// Sufficient for most instructions: 8 value and 4 ref registers, 16 bytes of globals, 2 ref globals, 2 types,
// 1 constant, functions 0 (the verified one) and 1 ("0iIr_rI"), imports 0 ("0iIr_rI"), 1 (with spans), 2 (no
// convention).
ModuleParts room(const CodeBuilder& code, int blocks = 1, uint32_t version = 17) {
  ModuleParts parts;
  parts.bytecode_version = version << 16;
  parts.functions.push_back({code.bytes(), "0v_v", 8, 4, blocks, kFeatureF32 | kFeatureF64});
  parts.functions.push_back({CodeBuilder().block().ret({ref(0), 2}).bytes(), "0iIr_rI", 4, 1});
  parts.exports.emplace_back("main", 0);
  parts.features = kFeatureF32 | kFeatureF64;
  parts.types = {"i32", "!vm.buffer"};
  parts.rodata = {{{1}}};
  parts.imports = {{"m.f", "0iIr_rI"},
                   {"m.span", "0iCrID_i"},
                   {"m.bare", std::nullopt},
                   {"m.wrong", "0q"},
                   {"m.new", "1i"}};
  parts.global_bytes = 16;
  parts.global_refs = 2;
  return parts;
}

// A function with one block: `code`, which includes its marker, and a return.
Result<> verify_one(CodeBuilder code, uint32_t version = 17) { return verify(room(code.ret(), 1, version)); }

CodeBuilder block() { return CodeBuilder().block(); }

testing::AssertionResult refused(const CodeBuilder& instruction, Code code, std::string_view message) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    const auto result = fails_with(verify_one(instruction, version), code, message);
    if (!result) return testing::AssertionFailure() << "bytecode " << version << ": " << result.message();
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult accepted(const CodeBuilder& instruction) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    const auto result = succeeds(verify_one(instruction, version));
    if (!result) return testing::AssertionFailure() << "bytecode " << version << ": " << result.message();
  }
  return testing::AssertionSuccess();
}

// The rules before the body, 3.1.

TEST(VerifyFrame, FeaturesOfTheVersion) {
  for (const uint32_t version : {15u, 16u, 17u}) {
    for (uint32_t bit = 0; bit < 32; ++bit) {
      ModuleParts parts = one_function({.features = 1u << bit});
      parts.bytecode_version = version << 16;
      if (bit < 2 || (bit < 4 && version == 17)) {
        EXPECT_OK(verify(parts));
      } else {
        EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("requires features 0x{:X}", 1u << bit), verify(parts));
      }
    }
  }
}

TEST(VerifyFrame, RegisterCounts) {
  const auto with = [](int values, int refs) {
    return verify(one_function({.values = values, .refs = refs}));
  };
  EXPECT_OK(with(0x4000, 0x2000));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "32768 value and 1 ref registers", with(0x4001, 0));
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "1 value and 16384 ref registers", with(0, 0x2001));
}

TEST(VerifyFrame, OwnConvention) {
  const auto with = [](std::optional<std::string> convention) {
    return verify(one_function({.convention = std::move(convention), .values = 8, .refs = 8}));
  };
  EXPECT_OK(with(std::nullopt));
  EXPECT_OK(with(""));
  EXPECT_OK(with("0"));
  EXPECT_OK(with("0iIr"));
  EXPECT_FAILS(UNIMPLEMENTED, "version '1'", with("1v_v"));
  EXPECT_FAILS(INVALID_ARGUMENT, "unknown character 'q'", with("0q"));
  EXPECT_FAILS(INVALID_ARGUMENT, "unknown character 'q'", with("0v_q"));
  EXPECT_FAILS(INVALID_ARGUMENT, "only imports may take spans", with("0CiD"));
  EXPECT_FAILS(INVALID_ARGUMENT, "only allowed in arguments", with("0v_CiD"));
  EXPECT_FAILS(INVALID_ARGUMENT, "a span inside a span", with("0CCiDD"));
}

TEST(VerifyFrame, ArgumentsFitTheRegisters) {
  const auto with = [](std::string convention, int values, int refs) {
    return verify(one_function({.convention = std::move(convention), .values = values, .refs = refs}));
  };
  EXPECT_OK(with("0i", 0, 0));  // rounded up to one
  EXPECT_OK(with("0r", 0, 0));
  EXPECT_OK(with("0iii", 3, 0));
  EXPECT_OK(with("0iiii", 3, 0));  // rounded up to four
  EXPECT_OK(with("0iI", 4, 0));
  EXPECT_OK(with("0rIfrF", 8, 2));
  constexpr std::string_view kMessage = "the arguments of";
  EXPECT_FAILS(INVALID_ARGUMENT, kMessage, with("0ii", 1, 0));
  EXPECT_FAILS(INVALID_ARGUMENT, kMessage, with("0I", 1, 0));
  EXPECT_FAILS(INVALID_ARGUMENT, "take 4 value and 0 ref registers", with("0iI", 2, 0));  // i0, i2:3
  EXPECT_FAILS(INVALID_ARGUMENT, "take 8 value", with("0iIiF", 4, 0));
  EXPECT_FAILS(INVALID_ARGUMENT, "0 value and 2 ref registers, but the function has 1 and 1",
               with("0rr", 0, 1));
}

// The rules of the walk, 3.2.

TEST(VerifyBody, TheExampleOfTheSpecification) {  // isa.md, 2.2
  const std::vector<uint8_t> code = {0x79, 0x22, 0, 0, 1, 0,    2, 0,    0x56, 0x18, 0, 0, 0, 0, 2, 0,
                                     2,    0,    0, 0, 1, 0xC0, 0, 0x80, 0x79, 0x5A, 2, 0, 0, 0, 0, 0xC0};
  for (const uint32_t version : {15u, 16u, 17u}) {
    ModuleParts parts = one_function({code, "0iirr_ir", 3, 2, 2, 0});
    parts.bytecode_version = version << 16;
    EXPECT_OK(verify(parts));
  }
}

TEST(VerifyBody, StaysInsideTheFunction) {
  FunctionParts function = {.code = block().op(Op::add_i32, {0, 0, 0}).ret().bytes(), .values = 1};
  const auto size = static_cast<int>(function.code.size());
  EXPECT_OK(verify(one_function(function)));
  for (int length = 1; length < size; ++length) {
    function.length = length;
    const Result<> result = verify(one_function(function));
    ASSERT_FALSE(result.has_value()) << length;
    // A cut within an instruction, or between two: the block has no terminator or (one byte is ignored) there
    // is no block.
    const bool inside = (length >= 3 && length < 8) || (length >= 10 && length < size);
    EXPECT_EQ(result.error().code(), inside ? Code::OUT_OF_RANGE : Code::INVALID_ARGUMENT)
        << length << ' ' << result.error().text();
  }
}

TEST(VerifyBody, ALastByteIsNotLookedAt) {
  FunctionParts function = {.code = CodeBuilder().block().ret().bytes()};
  function.code.push_back(0xFF);
  EXPECT_OK(verify(one_function(function)));
  function.code.push_back(0xFF);
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a block marker (0x79), found byte 0xFF",
               verify(one_function(function)));
}

TEST(VerifyBody, BlockMarkers) {
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a block marker (0x79), found byte 0x5A",
               verify(one_function({CodeBuilder().ret().bytes()})));
  EXPECT_FAILS(INVALID_ARGUMENT, "found byte 0x5A", verify(one_function({block().ret().ret().bytes()})));
  FunctionParts twice{block().block().ret().bytes()};
  twice.blocks = 2;
  EXPECT_FAILS(INVALID_ARGUMENT, "a block marker inside a block", verify(one_function(twice)));
  FunctionParts open{block().op(Op::const_i32_zero, {0}).bytes()};
  EXPECT_FAILS(INVALID_ARGUMENT, "the last block has no terminator", verify(one_function(open)));
}

TEST(VerifyBody, OpcodesOfTheVersion) {
  const CodeBuilder discard = block().op(Op::discard_refs).list({ref(0)});
  const CodeBuilder assign = block().op(Op::assign_ref, {ref(0), ref(1)});
  EXPECT_FAILS(INVALID_ARGUMENT, "'discard.refs' (0x85) exists since bytecode 16", verify_one(discard, 15));
  EXPECT_FAILS(INVALID_ARGUMENT, "'assign.ref' (0x86) exists since bytecode 16", verify_one(assign, 15));
  for (const uint32_t version : {16u, 17u}) {
    EXPECT_OK(verify_one(discard, version));
    EXPECT_OK(verify_one(assign, version));
  }
  const auto yieldable = [](bool variadic, uint32_t version) {
    CodeBuilder code = block();
    code.op(variadic ? Op::call_variadic_yieldable : Op::call_yieldable).u32(kImportBit | 2);
    if (variadic) code.list({});
    code.list({}).u32(variadic ? 16 : 14).list({});
    return verify(room(code.block().ret(), 2, version));
  };
  for (const bool variadic : {false, true}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "exists since bytecode 17", yieldable(variadic, 15));
    EXPECT_FAILS(INVALID_ARGUMENT, "exists since bytecode 17", yieldable(variadic, 16));
    EXPECT_OK(yieldable(variadic, 17));
  }
  EXPECT_TRUE(refused(block().u8(0xDF), Code::INVALID_ARGUMENT, "byte 0xDF is not an opcode"));
  EXPECT_TRUE(
      refused(block().u8(0xE0).u8(0x3E), Code::INVALID_ARGUMENT, "bytes 0xE0 0x3E are not an opcode"));
  EXPECT_TRUE(
      refused(block().u8(0xE1).u8(0x40), Code::INVALID_ARGUMENT, "bytes 0xE1 0x40 are not an opcode"));
}

TEST(VerifyBody, ExtensionSetsNeedTheFunctionsFeature) {
  for (const Op op : {Op::const_f32_zero, Op::const_f64_zero}) {
    const uint32_t needed = op == Op::const_f32_zero ? kFeatureF32 : kFeatureF64;
    FunctionParts function{block().op(op, {0}).ret().bytes()};
    function.values = 2;
    function.features = needed;
    ModuleParts parts = one_function(function);
    EXPECT_OK(verify(parts));
    parts.features = 3;  // the module's features are not used
    parts.functions[0].features = needed ^ 3;
    EXPECT_FAILS(INVALID_ARGUMENT, "requirements of the function lack", verify(parts));
  }
}

TEST(VerifyBody, SuspensionNeedsNoFeature) {
  const CodeBuilder code = block().op(Op::yield).u32(8).remap({}).block().ret();
  FunctionParts function{code.bytes()};
  function.blocks = 2;
  EXPECT_OK(verify(one_function(function)));
}

TEST(VerifyBody, BranchTargets) {
  const auto branch = [](uint32_t target, int blocks = 2) {
    return verify(room(block().op(Op::br).u32(target).remap({}).block().ret(), blocks));
  };
  EXPECT_OK(branch(8));
  EXPECT_FAILS(INVALID_ARGUMENT, "a branch to pc 0x9, where no block starts", branch(9, 3));
  EXPECT_FAILS(INVALID_ARGUMENT, "a branch to pc 0x1, where no block starts", branch(1, 3));
  EXPECT_FAILS(INVALID_ARGUMENT, "more blocks than the stated 1", branch(8, 1));
  EXPECT_FAILS(INVALID_ARGUMENT, "more blocks than the stated 2", branch(9, 2));
  EXPECT_FAILS(INVALID_ARGUMENT, "states 3 blocks, but 2 were found", branch(8, 3));
  EXPECT_FAILS(INVALID_ARGUMENT, "which is not within the function", branch(1000));
  EXPECT_FAILS(INVALID_ARGUMENT, "which is not within the function", branch(0x00FFFFFE));
  EXPECT_FAILS(OUT_OF_RANGE, "expected a pc below 0xFFFFFF", branch(0x00FFFFFF));
  EXPECT_FAILS(OUT_OF_RANGE, "expected a pc below 0xFFFFFF", branch(0xFFFFFFFF));
}

TEST(VerifyBody, ABlockHasMoreThanItsMarker) {
  CodeBuilder code = block().op(Op::br).u32(8).remap({}).u8(0x79);  // the last byte
  EXPECT_FAILS(INVALID_ARGUMENT, "which is not within the function", verify(room(code, 2)));
}

TEST(VerifyBody, DeadBlocksCount) {
  EXPECT_OK(verify(room(block().ret().block().ret(), 2)));
  EXPECT_FAILS(INVALID_ARGUMENT, "more blocks than the stated 1",
               verify(room(block().ret().block().ret(), 1)));
}

TEST(VerifyBody, EveryBranchIsChecked) {
  const auto cond_br = [](uint32_t first, uint32_t second) {
    return verify(
        room(block().op(Op::cond_br, {0}).u32(first).remap({}).u32(second).remap({}).block().ret(), 2));
  };
  EXPECT_OK(cond_br(16, 0));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'true_target' of 'cond_br'", cond_br(0xFFFFFF, 0));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'false_target' of 'cond_br'", cond_br(16, 0xFFFFFF));
  const auto table = [](uint32_t fallback, uint32_t first, uint32_t second, uint16_t moved_from) {
    CodeBuilder code = block().op(Op::br_table, {0}).u32(fallback).remap({}).u16(2);
    code.u32(first).remap({}).u32(second).remap({{moved_from, 0}});
    return verify(room(code.block().ret(), 2));
  };
  EXPECT_OK(table(28, 28, 28, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'default_target' of 'br_table'", table(0xFFFFFF, 28, 28, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'cases' of 'br_table'", table(28, 0xFFFFFF, 28, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'cases' of 'br_table'", table(28, 28, 0xFFFFFF, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "names i8", table(28, 28, 28, 8));
  const auto resume = [](uint32_t target) {
    return verify(room(
        block().op(Op::call_yieldable).u32(kImportBit | 2).list({}).u32(target).list({}).block().ret(), 2));
  };
  EXPECT_OK(resume(14));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'resume' of 'call.yieldable'", resume(0xFFFFFF));
  for (const Op op : {Op::br, Op::yield, Op::break_})
    EXPECT_FAILS(OUT_OF_RANGE, "operand 'target'", verify(room(block().op(op).u32(0xFFFFFF).remap({}))));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'target'",
               verify(room(block().op(Op::cond_break, {0}).u32(0xFFFFFF).remap({}))));
}

// Operands, 3.3.

// An instruction of `op` with valid operands, except register operand number `bad`, which is `reg`.
std::optional<CodeBuilder> with_register(const OpInfo& op, size_t bad, uint16_t reg) {
  CodeBuilder code = block().op(static_cast<Op>(&op - kOps.data()));
  for (size_t i = 0; i < op.operand_count; ++i) {
    const Operand& operand = op.operands[i];
    const bool wide = operand.bank == Bank::i64 || operand.bank == Bank::f64;
    switch (operand.kind) {
      case OperandKind::reg:
        code.u16(i == bad ? reg : operand.bank == Bank::ref ? ref(0) : 0);
        break;
      case OperandKind::immediate:
        wide ? code.u64(0) : code.u32(0);
        break;
      case OperandKind::string:
        code.string("");
        break;
      case OperandKind::reg_list:
        if (i == bad) {
          code.list({static_cast<uint16_t>(operand.bank == Bank::ref ? ref(0) : 0), reg});
        } else {
          code.list({});
        }
        break;
      case OperandKind::u16_list:
        code.list({});
        break;
      case OperandKind::func:
        code.u32(kImportBit | 2);
        break;
      case OperandKind::global_bytes:
      case OperandKind::global_ref:
      case OperandKind::rodata:
      case OperandKind::type:
        code.u32(0);
        break;
      case OperandKind::block:
      case OperandKind::remap:
      case OperandKind::cases:
        return std::nullopt;  // branches are tested separately
    }
  }
  return code;
}

TEST(VerifyOperands, EveryRegisterOfEveryOpcode) {
  size_t checked = 0;
  for (const OpInfo& op : kOps) {
    if (op.flags & (PREFIX | MARKER)) continue;
    for (size_t i = 0; i < op.operand_count; ++i) {
      const Operand& operand = op.operands[i];
      if (operand.kind != OperandKind::reg && operand.kind != OperandKind::reg_list) continue;
      const auto attempt = [&](uint16_t reg) -> std::optional<Result<>> {
        std::optional<CodeBuilder> code = with_register(op, i, reg);
        if (!code) return std::nullopt;
        if (!op.terminator()) code->ret();
        return verify(room(*code, 1, op.since));
      };
      const auto refused_with = [&](uint16_t reg, Code code) {
        const auto result = attempt(reg);
        if (!result) return testing::AssertionSuccess();
        ++checked;
        return fails_with(*result, code, fmt::format("operand '{}' of '{}'", operand.name(), op.mnemonic()));
      };
      const std::string what = fmt::format("{} {}", op.mnemonic(), operand.name());
      if (operand.bank == Bank::any) {
        EXPECT_TRUE(refused_with(8, Code::OUT_OF_RANGE)) << what;
        EXPECT_TRUE(refused_with(ref(4), Code::OUT_OF_RANGE)) << what;
        EXPECT_TRUE(refused_with(moved(4), Code::OUT_OF_RANGE)) << what;
        continue;
      }
      if (operand.bank == Bank::ref) {
        EXPECT_TRUE(refused_with(ref(4), Code::OUT_OF_RANGE)) << what;
        EXPECT_TRUE(refused_with(moved(4), Code::OUT_OF_RANGE)) << what;
        EXPECT_TRUE(refused_with(ref(kRefOrdinalMask), Code::OUT_OF_RANGE)) << what;
        EXPECT_TRUE(refused_with(0, Code::INVALID_ARGUMENT)) << what;
        const auto last = attempt(moved(3));  // MOVE is accepted everywhere
        EXPECT_TRUE(!last || succeeds(*last)) << what;
        continue;
      }
      const bool wide = operand.bank == Bank::i64 || operand.bank == Bank::f64;
      EXPECT_TRUE(refused_with(ref(0), Code::INVALID_ARGUMENT)) << what;
      EXPECT_TRUE(refused_with(8, Code::OUT_OF_RANGE)) << what;
      EXPECT_TRUE(refused_with(0x4000, Code::OUT_OF_RANGE)) << what;  // not a MOVE bit here
      EXPECT_TRUE(refused_with(0x7FFE, Code::OUT_OF_RANGE)) << what;
      EXPECT_TRUE(!wide || refused_with(1, Code::INVALID_ARGUMENT)) << what;
      const auto last = attempt(wide ? 6 : 7);
      EXPECT_TRUE(!last || succeeds(*last)) << what;
    }
  }
  EXPECT_GT(checked, 2000u);
}

TEST(VerifyOperands, RegistersAreRoundedUp) {
  FunctionParts function{block().op(Op::const_i32_zero, {3}).op(Op::const_ref_zero, {ref(7)}).ret().bytes()};
  function.values = 3;
  function.refs = 5;
  EXPECT_OK(verify(one_function(function)));
  function.values = 2;
  EXPECT_FAILS(OUT_OF_RANGE, "names i3, but the function has 2 value registers",
               verify(one_function(function)));
  function.values = 3;
  function.refs = 4;
  EXPECT_FAILS(OUT_OF_RANGE, "names r7, but the function has 4 ref registers",
               verify(one_function(function)));
}

TEST(VerifyOperands, APairNeedsTwoRegisters) {
  FunctionParts function{block().op(Op::const_i64_zero, {0}).ret().bytes()};
  function.values = 1;
  EXPECT_FAILS(OUT_OF_RANGE, "names the pair i0:1", verify(one_function(function)));
  function.values = 2;
  EXPECT_OK(verify(one_function(function)));
}

TEST(VerifyOperands, Remaps) {
  const auto remap = [](uint16_t source, uint16_t destination) {
    return verify(room(block().op(Op::br).u32(12).remap({{source, destination}}).block().ret(), 2));
  };
  EXPECT_OK(remap(7, 0));
  EXPECT_OK(remap(1, 2));  // halves of pairs: any alignment
  EXPECT_OK(remap(ref(3), ref(0)));
  EXPECT_OK(remap(moved(3), moved(0)));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'remap' of 'br': names i8", remap(8, 0));
  EXPECT_FAILS(OUT_OF_RANGE, "names i32767", remap(0, kNoRegister));
  EXPECT_FAILS(OUT_OF_RANGE, "names r4", remap(ref(4), ref(0)));
  EXPECT_FAILS(OUT_OF_RANGE, "names r4", remap(ref(0), moved(4)));
  EXPECT_FAILS(INVALID_ARGUMENT, "move 0 is between a value and a ref register", remap(0, ref(0)));
  EXPECT_FAILS(INVALID_ARGUMENT, "move 0 is between a value and a ref register", remap(ref(0), 0));
}

TEST(VerifyOperands, Globals) {
  const auto global = [](Op op, uint32_t offset) { return block().op(op).u32(offset).u16(0); };
  for (const Op op : {Op::global_load_i32, Op::global_store_i32, Op::global_load_f32, Op::global_store_f32}) {
    EXPECT_TRUE(accepted(global(op, 12)));
    EXPECT_TRUE(accepted(global(op, 1)));  // any alignment
    EXPECT_TRUE(refused(global(op, 13), Code::OUT_OF_RANGE,
                        "globals 13 to 17 do not exist; the module has 16 bytes"));
    EXPECT_TRUE(refused(global(op, 0xFFFFFFFF), Code::OUT_OF_RANGE, "globals 4294967295 to 4294967299"));
  }
  for (const Op op : {Op::global_load_i64, Op::global_store_i64, Op::global_load_f64, Op::global_store_f64}) {
    EXPECT_TRUE(accepted(global(op, 8)));
    EXPECT_TRUE(refused(global(op, 9), Code::OUT_OF_RANGE, "globals 9 to 17"));
    EXPECT_TRUE(refused(global(op, 0xFFFFFFF8), Code::OUT_OF_RANGE, "do not exist"));
  }
}

TEST(VerifyOperands, Ordinals) {
  const auto ref_global = [](uint32_t ordinal) {
    return block().op(Op::global_load_ref).u32(ordinal).u32(1).u16(ref(0));
  };
  EXPECT_TRUE(accepted(ref_global(1)));
  EXPECT_TRUE(refused(ref_global(2), Code::OUT_OF_RANGE, "ref global 2 does not exist; the module has 2"));
  const auto type = [](uint32_t ordinal) {
    return block().op(Op::list_alloc).u32(ordinal).u16(0).u16(ref(0));
  };
  EXPECT_TRUE(accepted(type(1)));
  EXPECT_TRUE(refused(type(2), Code::OUT_OF_RANGE, "type 2 does not exist; the module has 2"));
  EXPECT_TRUE(refused(type(0xFFFFFFFF), Code::OUT_OF_RANGE, "type 4294967295 does not exist"));
  const auto rodata = [](uint32_t ordinal) {
    return block().op(Op::const_ref_rodata).u32(ordinal).u16(ref(0));
  };
  EXPECT_TRUE(accepted(rodata(0)));
  EXPECT_TRUE(refused(rodata(1), Code::OUT_OF_RANGE, "constant 1 does not exist; the module has 1"));
  const auto import = [](uint32_t function) { return block().op(Op::import_resolved).u32(function).u16(0); };
  EXPECT_TRUE(accepted(import(kImportBit | 4)));
  EXPECT_TRUE(
      refused(import(kImportBit | 5), Code::INVALID_ARGUMENT, "import 5 does not exist; the module has 5"));
  EXPECT_TRUE(refused(import(0), Code::INVALID_ARGUMENT, "names internal function 0; expected an import"));
  const auto call = [](uint32_t function) { return block().op(Op::call).u32(function).list({}).list({}); };
  EXPECT_TRUE(accepted(call(0)));
  EXPECT_TRUE(refused(call(2), Code::INVALID_ARGUMENT, "function 2 does not exist; the module has 2"));
  EXPECT_TRUE(
      refused(call(kImportBit | 5), Code::INVALID_ARGUMENT, "import 5 does not exist; the module has 5"));
  EXPECT_TRUE(refused(call(0x7FFFFFFF), Code::INVALID_ARGUMENT, "function 2147483647 does not exist"));
}

// Calls and returns, 3.4.

CodeBuilder call(uint32_t callee, std::initializer_list<uint16_t> arguments,
                 std::initializer_list<uint16_t> results) {
  return block().op(Op::call).u32(callee).list(arguments).list(results);
}

TEST(VerifyCalls, ListsFollowTheConvention) {
  for (const uint32_t callee : {1u, kImportBit | 0u}) {  // both "0iIr_rI"
    const std::string_view place = callee == 1 ? "call to internal function 1: " : "call to import 'm.f': ";
    EXPECT_TRUE(accepted(call(callee, {1, 2, ref(3)}, {ref(0), 6})));
    EXPECT_TRUE(accepted(call(callee, {1, 2, moved(3)}, {moved(0), 6})));
    EXPECT_TRUE(
        accepted(call(callee, {1, 2, ref(3), 5, 5, ref(1)}, {ref(0), 6, 7, ref(0)})));  // more than it needs
    EXPECT_TRUE(refused(call(callee, {}, {ref(0), 6}), Code::OUT_OF_RANGE,
                        fmt::format("{}expected at least 1 arguments, found 0", place)));
    EXPECT_TRUE(refused(call(callee, {1, 2}, {ref(0), 6}), Code::OUT_OF_RANGE,
                        "expected at least 3 arguments, found 2"));
    EXPECT_TRUE(
        refused(call(callee, {ref(1), 2, ref(3)}, {ref(0), 6}), Code::INVALID_ARGUMENT,
                fmt::format("{}entry 0 of the arguments: names r1; expected a register of kind i32", place)));
    EXPECT_TRUE(refused(call(callee, {1, ref(2), ref(3)}, {ref(0), 6}), Code::INVALID_ARGUMENT,
                        "expected a register of kind i64"));
    EXPECT_TRUE(refused(call(callee, {1, 3, ref(3)}, {ref(0), 6}), Code::INVALID_ARGUMENT,
                        "names i3; expected an even register"));
    EXPECT_TRUE(refused(call(callee, {1, 2, 3}, {ref(0), 6}), Code::INVALID_ARGUMENT,
                        "expected a register of kind ref"));
    EXPECT_TRUE(refused(call(callee, {1, 2, ref(3)}, {ref(0)}), Code::OUT_OF_RANGE,
                        "expected at least 2 results, found 1"));
    EXPECT_TRUE(refused(call(callee, {1, 2, ref(3)}, {0, 6}), Code::INVALID_ARGUMENT,
                        "entry 0 of the results: names i0"));
    EXPECT_TRUE(refused(call(callee, {1, 2, ref(3)}, {ref(0), 5}), Code::INVALID_ARGUMENT,
                        "entry 1 of the results: names i5"));
    EXPECT_TRUE(refused(call(callee, {1, 2, ref(3), 8}, {ref(0), 6}), Code::OUT_OF_RANGE,
                        "operand 'arguments' of 'call': names i8"));
    EXPECT_TRUE(refused(call(callee, {1, 2, ref(3)}, {ref(0), 6, ref(4)}), Code::OUT_OF_RANGE,
                        "operand 'results' of 'call': names r4"));
  }
}

TEST(VerifyCalls, FloatsAreValues) {
  ModuleParts parts = room(call(kImportBit, {1, 2}, {3, 4}).ret());
  parts.imports[0].convention = "0fF_fF";
  EXPECT_OK(verify(parts));
  parts.functions[0].code = call(kImportBit, {1, 3}, {3, 4}).ret().bytes();
  EXPECT_FAILS(INVALID_ARGUMENT, "names i3; expected an even register", verify(parts));
  parts.functions[0].code = call(kImportBit, {ref(1), 2}, {3, 4}).ret().bytes();
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a register of kind f32", verify(parts));
}

TEST(VerifyCalls, ImportsWithoutConventionTakeAnything) {
  EXPECT_TRUE(accepted(call(kImportBit | 2, {1, ref(0), 3}, {ref(1), 5})));
  EXPECT_TRUE(accepted(block().op(Op::call_variadic).u32(kImportBit | 2).list({}).list({1}).list({})));
}

TEST(VerifyCalls, ConventionsOfCalleesMustParse) {
  EXPECT_TRUE(refused(call(kImportBit | 3, {}, {}), Code::INVALID_ARGUMENT,
                      "call to import 'm.wrong': calling convention '0q'"));
  EXPECT_TRUE(refused(call(kImportBit | 4, {}, {}), Code::UNIMPLEMENTED,
                      "call to import 'm.new': calling convention '1i'"));
  ModuleParts parts = room(block().ret());  // functions that are not called are not checked
  EXPECT_OK(verify(parts));
}

CodeBuilder variadic(uint32_t callee, std::initializer_list<uint16_t> segments,
                     std::initializer_list<uint16_t> arguments,
                     std::initializer_list<uint16_t> results = {0}) {
  return block().op(Op::call_variadic).u32(callee).list(segments).list(arguments).list(results);
}

TEST(VerifyCalls, Spans) {
  constexpr uint32_t kSpan = kImportBit | 1;  // "0iCrID_i"
  EXPECT_TRUE(accepted(variadic(kSpan, {0xFFFF, 0}, {1})));
  EXPECT_TRUE(accepted(variadic(kSpan, {0xFFFF, 2}, {1, ref(0), 2, moved(1), 4})));
  EXPECT_TRUE(
      accepted(variadic(kSpan, {7, 1, 9, 9}, {1, ref(0), 2, 5})));  // more than it needs; 7 is not used
  EXPECT_TRUE(refused(call(kSpan, {1}, {0}), Code::INVALID_ARGUMENT,
                      "the callee takes a span; expected the variadic form"));
  EXPECT_TRUE(refused(variadic(kSpan, {0xFFFF}, {1}), Code::OUT_OF_RANGE,
                      "expected at least 2 segment sizes, found 1"));
  EXPECT_TRUE(
      refused(variadic(kSpan, {}, {1}), Code::OUT_OF_RANGE, "expected at least 2 segment sizes, found 0"));
  EXPECT_TRUE(refused(variadic(kSpan, {0xFFFF, 2}, {1, ref(0), 2, ref(1)}), Code::OUT_OF_RANGE,
                      "variadic call to import 'm.span': expected at least 5 arguments, found 4"));
  EXPECT_TRUE(refused(variadic(kSpan, {0xFFFF, 0xFFFF}, {1, ref(0), 2}), Code::OUT_OF_RANGE,
                      "at least 4 arguments, found 3"));
  EXPECT_TRUE(refused(variadic(kSpan, {0xFFFF, 1}, {1, 0, 2}), Code::INVALID_ARGUMENT,
                      "entry 1 of the arguments: names i0"));
  EXPECT_TRUE(refused(variadic(kSpan, {0xFFFF, 2}, {1, ref(0), 2, ref(1), 3}), Code::INVALID_ARGUMENT,
                      "entry 4 of the arguments: names i3; expected an even register"));
  EXPECT_TRUE(
      refused(variadic(kSpan, {0xFFFF, 0}, {1}, {}), Code::OUT_OF_RANGE, "expected at least 1 results"));
  EXPECT_TRUE(
      accepted(variadic(kImportBit, {}, {1, 2, ref(0)}, {ref(0), 6})));  // no span, so no segment is needed
  EXPECT_TRUE(refused(variadic(1, {}, {1, 2, ref(0)}, {ref(0), 6}), Code::FAILED_PRECONDITION,
                      "variadic call to internal function 1: "));
}

TEST(VerifyCalls, AStrayVoidHasASegment) {
  ModuleParts parts = room(variadic(kImportBit, {0, 0, 1}, {1, ref(0)}, {}).ret());
  parts.imports[0].convention = "0ivCrD";
  EXPECT_OK(verify(parts));
  parts.functions[0].code = variadic(kImportBit, {0, 1}, {1, ref(0)}, {}).ret().bytes();
  EXPECT_FAILS(OUT_OF_RANGE, "expected at least 3 segment sizes, found 2", verify(parts));
}

TEST(VerifyCalls, AnInternalCalleeWithASpan) {
  ModuleParts parts = room(call(1, {}, {}).ret());
  parts.functions[1].convention = "0CiD";
  EXPECT_FAILS(INVALID_ARGUMENT, "the callee takes a span", verify(parts));
  EXPECT_FAILS(INVALID_ARGUMENT, "only imports may take spans", verify(parts, 1));
}

TEST(VerifyCalls, YieldableForms) {
  const auto yieldable = [](uint32_t callee, std::initializer_list<uint16_t> arguments) {
    CodeBuilder code = block().op(Op::call_yieldable).u32(callee).list(arguments);
    const uint32_t results_at = code.pc() + 4;
    const uint32_t resume = results_at + 2 + 4;
    return verify(room(code.u32(resume).list({ref(0), 6}).block().ret(), 2));
  };
  EXPECT_OK(yieldable(1, {1, 2, ref(0)}));
  EXPECT_OK(yieldable(kImportBit, {1, 2, ref(0)}));
  EXPECT_FAILS(OUT_OF_RANGE, "yieldable call to import 'm.f': expected at least 3",
               yieldable(kImportBit, {1, 2}));
  EXPECT_FAILS(OUT_OF_RANGE, "yieldable call to internal function 1: ", yieldable(1, {1, 2}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected the variadic form", yieldable(kImportBit | 1, {1}));

  const auto both = [](uint32_t callee, uint16_t tuples) {
    CodeBuilder code =
        block().op(Op::call_variadic_yieldable).u32(callee).list({0xFFFF, tuples}).list({1, ref(0), 2});
    const uint32_t resume = code.pc() + 4 + 2 + 2;
    return verify(room(code.u32(resume).list({0}).block().ret(), 2));
  };
  EXPECT_OK(both(kImportBit | 1, 1));
  EXPECT_FAILS(OUT_OF_RANGE, "yieldable variadic call to import 'm.span': ", both(kImportBit | 1, 2));
  EXPECT_FAILS(FAILED_PRECONDITION, "yieldable variadic call to internal function 1: ", both(1, 1));
}

TEST(VerifyReturns, ListsFollowTheConvention) {
  const auto returning = [](std::initializer_list<uint16_t> values) {
    FunctionParts function{block().ret(values).bytes(), "0v_iIr", 4, 2};
    return verify(one_function(function));
  };
  EXPECT_OK(returning({1, 2, ref(1)}));
  EXPECT_OK(returning({1, 2, moved(1), 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "expected at least 1 returned values, found 0", returning({}));
  EXPECT_FAILS(OUT_OF_RANGE, "expected at least 3 returned values, found 2", returning({1, 2}));
  EXPECT_FAILS(INVALID_ARGUMENT, "entry 0 of the returned values: names r0", returning({ref(0), 2, ref(1)}));
  EXPECT_FAILS(INVALID_ARGUMENT, "names i1; expected an even register", returning({1, 1, ref(1)}));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected a register of kind ref", returning({1, 2, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "operand 'values' of 'return': names i4", returning({4, 2, ref(1)}));
}

TEST(VerifyErrors, SayWhere) {
  const CodeBuilder code = block().op(Op::const_i32_zero, {0}).op(Op::add_i32, {0, 0, 8}).ret();
  ModuleParts parts = room(code);
  const Result<> named = verify(parts);
  ASSERT_FALSE(named.has_value());
  EXPECT_EQ(named.error().text(),
            "OUT_OF_RANGE; operand 'result' of 'add.i32': names i8, but the function has 8 value registers; "
            "at test.main+00000004");
  parts.exports.clear();
  EXPECT_FAILS(OUT_OF_RANGE, "; at test@0+00000004", verify(parts));
  parts.debug_names = {"inner"};
  EXPECT_FAILS(OUT_OF_RANGE, "; at test.inner+00000004", verify(parts));
  EXPECT_EQ(code_location(**load(parts.build()), 1, 0xABCDEF), "at test@1+00ABCDEF");
}

// Imports without a convention.

TEST(CheckImportCalls, AgainstTheProvider) {
  const auto check = [](const CodeBuilder& instruction, std::string_view provider) {
    const auto module = load(room(CodeBuilder(instruction).ret()).build());
    EXPECT_OK(module);
    EXPECT_OK(verify_function(**module, 0));
    const Convention convention = Convention::parse(provider).value();
    const Convention* providers[] = {nullptr, nullptr, &convention, nullptr, nullptr};
    return check_import_calls(**module, providers);
  };
  constexpr uint32_t kBare = kImportBit | 2;
  EXPECT_OK(check(call(kBare, {1, 2, ref(0)}, {3}), "0iIr_i"));
  EXPECT_OK(check(call(kBare, {1, 2, ref(0)}, {3}), "0v_v"));
  EXPECT_OK(check(block(), "0iIr_i"));  // it is not called
  EXPECT_FAILS(OUT_OF_RANGE,
               "call to import 'm.bare': expected at least 3 arguments, found 2; at test.main+00000001",
               check(call(kBare, {1, 2}, {3}), "0iIr_i"));
  EXPECT_FAILS(OUT_OF_RANGE, "at least 1 results", check(call(kBare, {1, 2, ref(0)}, {}), "0iIr_i"));
  EXPECT_FAILS(INVALID_ARGUMENT, "an even register", check(call(kBare, {1, 3, ref(0)}, {3}), "0iIr_i"));
  EXPECT_FAILS(INVALID_ARGUMENT, "expected the variadic form", check(call(kBare, {1}, {}), "0CiD"));
  EXPECT_OK(check(variadic(kBare, {2}, {1, 2}, {}), "0CiD"));
  EXPECT_FAILS(OUT_OF_RANGE, "at least 3 arguments", check(variadic(kBare, {3}, {1, 2}, {}), "0CiD"));
}

TEST(CheckImportCalls, PassesOverWhatIsNotChecked) {
  CodeBuilder code = call(kImportBit | 2, {}, {});
  const auto module = ASSERT_VALUE(load(room(code.ret()).build()));
  const Convention convention = Convention::parse("0i_i").value();
  const Convention* others[] = {&convention, &convention, nullptr, &convention, &convention};
  EXPECT_OK(check_import_calls(*module, others));
  const std::vector<const Convention*> none(5, nullptr);
  EXPECT_OK(check_import_calls(*module, none));
}

TEST(CheckImportCalls, FunctionsThatCannotBeRead) {
  FunctionParts broken{{0x79, 0xFF, 0}};
  ModuleParts parts = one_function(broken);
  parts.imports = {{"m.bare", std::nullopt}};
  const auto module = ASSERT_VALUE(load(parts.build()));
  const Convention convention = Convention::parse("0i_i").value();
  const Convention* providers[] = {&convention};
  EXPECT_OK(check_import_calls(*module, providers));
}

}  // namespace
}  // namespace halyard::vm::test
