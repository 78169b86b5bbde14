// The assembler: bytes of every instruction, the module it writes, the errors of vmasm.md section 7, Halyard's additions,
// and equality with modules that the reference assembler made.
#include "vm/assembler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bytecode_module_generated.h"
#include "vm/opcodes.h"
#include "vm/vmasm_forms.h"

namespace halyard::vm {
namespace {

using Bytes = std::vector<uint8_t>;

// An assembled module and its root table.
struct Assembled {
  Bytes bytes;
  const schema::BytecodeModule* module = nullptr;

  Bytes code(uint32_t function) const {
    const auto* descriptor = module->function_descriptors()->Get(function);
    const auto* data = module->bytecode_data()->data() + descriptor->bytecode_offset();
    return {data, data + descriptor->bytecode_length()};
  }
  std::string convention(uint32_t function) const {
    return module->function_signatures()->Get(function)->calling_convention()->str();
  }
  std::string rodata(uint32_t segment) const {
    const auto* data = module->rodata_segments()->Get(segment)->embedded_data();
    return {data->begin(), data->end()};
  }
};

Assembled assembled(const std::string& text, uint32_t version = 17) {
  Assembled result;
  auto bytes = assemble(text, {version, "t.vmasm"});
  if (!bytes) {
    ADD_FAILURE() << bytes.error().text() << "\n" << text;
    return result;
  }
  result.bytes = std::move(*bytes);
  flatbuffers::Verifier verifier(result.bytes.data(), result.bytes.size());
  EXPECT_TRUE(schema::VerifySizePrefixedBytecodeModuleBuffer(verifier));
  result.module = schema::GetSizePrefixedBytecodeModule(result.bytes.data());
  return result;
}

// The only function of a module whose body is these lines.
std::string in_function(const std::string& body, const std::string& arguments = "") {
  return "vm.module @m\nvm.func @f(" + arguments + ") -> () {\n" + body + "\nvm.return\n}\n";
}

Bytes code_of(const std::string& body) {
  const auto result = assembled(in_function(body));
  if (!result.module) return {};
  Bytes code = result.code(0);
  EXPECT_EQ(code.front(), 0x79);  // the entry block's marker
  // Without the marker and the final return: opcode, maybe a pad, an empty list.
  return {code.begin() + 1, code.end() - 3 - (code.size() % 2 == 0 && code[code.size() - 4] == 0x5A ? 1 : 0)};
}

std::string error_of(const std::string& text, Code code = Code::INVALID_ARGUMENT, uint32_t version = 17) {
  const auto result = assemble(text, {version, "t.vmasm"});
  if (result) {
    ADD_FAILURE() << "assembled, must not:\n" << text;
    return "";
  }
  EXPECT_EQ(result.error().code(), code) << result.error().text() << "\n" << text;
  return result.error().message();
}

// ---- The module -------------------------------------------------------------------------------------------------

TEST(Assembler, ExampleOfTheFormat) {  // module-format.md 14
  const auto result = assembled(
      "vm.module @t version 1\n"
      "vm.export @add\n"
      "vm.func @add(%i0: i32, %i1: i32) -> (i32) {\n"
      "  %i2 = vm.add.i32 %i0, %i1\n"
      "  vm.return %i2\n"
      "}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(std::string(result.bytes.begin() + 8, result.bytes.begin() + 12), "IREE");
  uint32_t prefix = 0;
  std::memcpy(&prefix, result.bytes.data(), 4);
  EXPECT_EQ(prefix, result.bytes.size() - 4);
  EXPECT_EQ(result.module->name()->str(), "t");
  EXPECT_EQ(result.module->version(), 1u);
  EXPECT_EQ(result.module->bytecode_version(), 0x00110000u);
  EXPECT_EQ(static_cast<uint32_t>(result.module->requirements()), 0u);
  EXPECT_EQ(result.code(0),
            (Bytes{0x79, 0x22, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x5A, 0x00, 0x01, 0x00, 0x02, 0x00}));
  EXPECT_EQ(result.module->bytecode_data()->size(), 16u);
  const auto* descriptor = result.module->function_descriptors()->Get(0);
  EXPECT_EQ(descriptor->block_count(), 1);
  EXPECT_EQ(descriptor->i32_register_count(), 3);
  EXPECT_EQ(descriptor->ref_register_count(), 0);
  EXPECT_EQ(result.convention(0), "0ii_i");
  EXPECT_EQ(result.module->exported_functions()->Get(0)->local_name()->str(), "add");
  // Absent when empty.
  EXPECT_EQ(result.module->attributes(), nullptr);
  EXPECT_EQ(result.module->dependencies(), nullptr);
  EXPECT_EQ(result.module->imported_functions(), nullptr);
  EXPECT_EQ(result.module->rodata_segments(), nullptr);
  EXPECT_EQ(result.module->module_state(), nullptr);
  EXPECT_EQ(result.module->types(), nullptr);
}

TEST(Assembler, ExampleOfTheInstructionSet) {  // isa.md 2.2
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @f(%i0: i32, %i1: i32, %r0: !vm.buffer, %r1: !vm.buffer) -> (i32, !vm.buffer) {\n"
      "%i2 = add.i32 %i0, %i1\n"
      "br ^bb1(%i2 -> %i0, %R1->%r0)\n"
      "^bb1:\n"
      "return %i0, %R0\n"
      "}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.code(0), (Bytes{0x79, 0x22, 0, 0, 1, 0, 2, 0, 0x56, 0x18, 0, 0, 0, 0, 2, 0,
                                   2,    0,    0, 0, 1, 0xC0, 0, 0x80, 0x79, 0x5A, 2, 0, 0, 0, 0, 0xC0}));
  const auto* descriptor = result.module->function_descriptors()->Get(0);
  EXPECT_EQ(descriptor->bytecode_length(), 32);
  EXPECT_EQ(descriptor->block_count(), 2);
  EXPECT_EQ(descriptor->i32_register_count(), 3);
  EXPECT_EQ(descriptor->ref_register_count(), 2);
  EXPECT_EQ(result.convention(0), "0iirr_ir");
}

TEST(Assembler, FunctionsArePaddedToEightAndPadsAreRelativeToTheirStart) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @a() -> () {\nvm.return\n}\n"                         // 79 5A 0000: 4 bytes
      "vm.func @b() -> () {\n%i0 = vm.const.i32.zero\nvm.return\n}\n");  // 79 0C 0000 5A pad 0000
  ASSERT_TRUE(result.module);
  const auto* b = result.module->function_descriptors()->Get(1);
  EXPECT_EQ(result.code(0), (Bytes{0x79, 0x5A, 0, 0}));
  EXPECT_EQ(b->bytecode_offset(), 8);
  EXPECT_EQ(result.code(1), (Bytes{0x79, 0x0C, 0, 0, 0x5A, 0, 0, 0}));
  EXPECT_EQ(result.module->bytecode_data()->size(), 16u);
}

TEST(Assembler, VersionWordAndNewInstructions) {
  const std::string plain = in_function("");
  EXPECT_EQ(assembled(plain, 15).module->bytecode_version(), 0x000F0000u);
  EXPECT_EQ(assembled(plain, 16).module->bytecode_version(), 0x00100000u);
  EXPECT_EQ(assembled(plain, 17).module->bytecode_version(), 0x00110000u);
  error_of(plain, Code::INVALID_ARGUMENT, 14);
  error_of(plain, Code::INVALID_ARGUMENT, 18);

  const std::string assign = in_function("%r1 = vm.assign.ref %r0");
  assembled(assign, 16);
  EXPECT_EQ(error_of(assign, Code::INVALID_ARGUMENT, 15),
            "t.vmasm:3: vm.assign.ref needs bytecode version 16; this module is assembled for version 15");
  const std::string yieldable = in_function("vm.call.yieldable @f() -> ^bb1()\n^bb1:");
  assembled(yieldable, 17);
  EXPECT_EQ(error_of(yieldable, Code::INVALID_ARGUMENT, 16),
            "t.vmasm:3: vm.call.yieldable needs bytecode version 17; this module is assembled for version 16");
}

TEST(Assembler, RequirementsComeFromTheInstructions) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @none(%i0: f32) -> (f32) {\nvm.return %i0\n}\n"
      "vm.func @f32(%i0: f32) -> () {\n%i1 = vm.add.f32 %i0, %i0\nvm.return\n}\n"
      "vm.func @f64(%i0:1: f64) -> () {\n%i2 = vm.trunc.f64.f32 %i0:1\nvm.return\n}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->function_descriptors()->Get(0)->requirements(), 0u);
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->requirements(), 1u);
  EXPECT_EQ(result.module->function_descriptors()->Get(2)->requirements(), 2u);
  EXPECT_EQ(static_cast<uint32_t>(result.module->requirements()), 3u);
}

TEST(Assembler, ExportsImportsAndAliases) {
  const auto result = assembled(
      "vm.export @b = @second\n"
      "vm.module @m version 0x10\n"
      "vm.import @lib.f cconv \"0i_i\"\n"
      "vm.import optional @lib.g cconv \"\"\n"
      "vm.func @first() -> () {\nvm.return\n}\n"
      "vm.func @second() -> () {\nvm.return\n}\n"
      "vm.export @first\n"
      "vm.export @also = @second\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->version(), 16u);
  const auto* exports = result.module->exported_functions();
  ASSERT_EQ(exports->size(), 3u);
  EXPECT_EQ(exports->Get(0)->local_name()->str(), "b");
  EXPECT_EQ(exports->Get(0)->internal_ordinal(), 1);
  EXPECT_EQ(exports->Get(1)->local_name()->str(), "first");
  EXPECT_EQ(exports->Get(1)->internal_ordinal(), 0);
  EXPECT_EQ(exports->Get(2)->internal_ordinal(), 1);
  const auto* imports = result.module->imported_functions();
  ASSERT_EQ(imports->size(), 2u);
  EXPECT_EQ(imports->Get(0)->full_name()->str(), "lib.f");
  EXPECT_EQ(imports->Get(0)->signature()->calling_convention()->str(), "0i_i");
  EXPECT_EQ(imports->Get(0)->flags(), schema::ImportFlags::REQUIRED);
  EXPECT_EQ(imports->Get(1)->signature()->calling_convention()->str(), "");
  EXPECT_EQ(imports->Get(1)->flags(), schema::ImportFlags::OPTIONAL);
}

TEST(Assembler, GlobalsAreLaidOutByWidth) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.global.i64 private mutable @a = 0 : i64\n"
      "vm.global.i32 mutable @b\n"
      "vm.global.f64 @c\n"
      "vm.global.f32 @d = 0 : f32\n"
      "vm.global.i32 @e\n"
      "vm.func @f() -> () {\n"
      "%i0:1 = vm.global.load.i64 @a\n"
      "%i0 = vm.global.load.f32 @b\n"  // same width: accepted
      "vm.global.store.f64 %i0:1, @c\n"
      "vm.global.store.i32 %i0, @d\n"
      "%i0 = vm.global.load.i32 .rwdata[8]\n"
      "vm.return\n}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->module_state()->global_bytes_capacity(), 32);
  EXPECT_EQ(result.module->module_state()->global_ref_count(), 0);
  // b 0, d 4, e 8; a 16, c 24.
  EXPECT_EQ(result.code(0), (Bytes{0x79, 0x04, 16, 0, 0, 0, 0, 0, 0xE0, 0x00, 0, 0, 0, 0, 0, 0, 0xE1, 0x01, 24, 0,
                                   0,    0,    0,  0, 0x01, 4, 0, 0, 0, 0, 0, 0x00, 8, 0, 0, 0, 0, 0, 0x5A, 0, 0, 0}));
}

TEST(Assembler, StateGrowsWithWhatIsNamedByNumber) {
  const auto result = assembled(in_function(
      "%r0 = vm.global.load.ref .refs[3] : !vm.buffer\n%i0:1 = vm.global.load.i64 .rwdata[0x10]"));
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.module->module_state()->global_ref_count(), 4);
  EXPECT_EQ(result.module->module_state()->global_bytes_capacity(), 24);
}

TEST(Assembler, TypesAreAddedOnFirstUse) {
  const auto result = assembled(
      "vm.module @m\nvm.type !vm.list<i8>\nvm.type i64\n"
      "vm.func @f() -> () {\n"
      "%i0 = vm.const.i32 1\n"
      "%r0 = vm.list.alloc %i0 : !vm.list<i8>\n"
      "%r0 = vm.list.alloc %i0 : vm.list<!vm.list<i32>>\n"
      "%r1 = vm.list.get.ref %r0, %i0 : vm.buffer\n"
      "%r1 = vm.list.get.ref %r0, %i0 : !vm.buffer\n"
      "%r1 = vm.cast.any.ref %R1 : !vm.ref<?> -> !vm.list<i8>\n"
      "vm.return\n}\n");
  ASSERT_TRUE(result.module);
  std::vector<std::string> names;
  for (const auto* type : *result.module->types()) names.push_back(type->full_name()->str());
  EXPECT_EQ(names, (std::vector<std::string>{"!vm.list<i8>", "i64", "i8", "!vm.list<i32>", "!vm.buffer"}));
}

// ---- Signatures -------------------------------------------------------------------------------------------------

TEST(Assembler, CallingConventions) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.func @a() -> () {\nvm.return\n}\n"
      "vm.func @b(%i0:1: i64, %i2: f32, %r0: !hal.buffer_view, %i3: i32, %r1: !vm.ref<?>) -> (%i0: f64, !vm.buffer) {\n"
      "vm.fail %i2, \"\"\n}\n"
      "vm.func @c(%i0: i32, %i1:2: i64) -> (f32) {\nvm.fail %i0, \"\"\n}\n"     // without a gap
      "vm.func @d(%i0: i32, %i2:3: i64, %i4: i32) -> (i64) {\nvm.fail %i0, \"\"\n}\n");  // where callers put it
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.convention(0), "0v_v");
  EXPECT_EQ(result.convention(1), "0Ifrir_Fr");
  EXPECT_EQ(result.convention(2), "0iI_f");
  EXPECT_EQ(result.convention(3), "0iIi_I");
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->i32_register_count(), 4);
  EXPECT_EQ(result.module->function_descriptors()->Get(1)->ref_register_count(), 2);
  EXPECT_EQ(result.module->function_descriptors()->Get(3)->i32_register_count(), 5);
}

TEST(Assembler, SignatureErrors) {
  const auto header = [](const std::string& text) { return "vm.module @m\nvm.func " + text + "\nvm.return\n}\n"; };
  error_of(header("@f() {"));
  error_of(header("@f() -> ()"));
  error_of(header("@f(%i0) -> () {"));
  error_of(header("@f(%i1: i32) -> () {"));
  error_of(header("@f(%i0: i32, %i0: i32) -> () {"));
  error_of(header("@f(%r1: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: i64) -> () {"));
  error_of(header("@f(%i0:1: i32) -> () {"));
  error_of(header("@f(%i0:2: i64) -> () {"));
  error_of(header("@f(%i0: i32, %i4:5: i64) -> () {"));
  error_of(header("@f(%r0: i32) -> () {"));
  error_of(header("@f(%R0: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: !vm.buffer) -> () {"));
  error_of(header("@f(%i0: int) -> () {"));
  error_of(header("f() -> () {"));
  error_of(header("@f-g() -> () {"));
  error_of(header("@f() -> () { }"));
  error_of(header("@f(%i0: i8) -> () {"), Code::UNIMPLEMENTED);
  error_of(header("@f() -> (i16) {"), Code::UNIMPLEMENTED);
}

// ---- Instructions -----------------------------------------------------------------------------------------------

// Text of an instruction from its form, and what it must assemble to from its operands: neither uses the encoder.
struct Sample {
  std::string text;
  Bytes bytes;
};

class SampleMaker {
 public:
  explicit SampleMaker(Op op) : op_(info(op)), form_(text_form(op)) {}

  Sample make() {
    std::string results;
    std::vector<std::string> texts(op_.operand_count);
    if (op_.set != OpSet::CORE) put(op_.set == OpSet::F32 ? 0xE0 : 0xE1, 1);
    put(op_.byte, 1);
    for (size_t i = 0; i < op_.operand_count; ++i) {
      texts[i] = operand(op_.operands[i], static_cast<int>(i));
      if (op_.operands[i].writes && form_.find("$r") == std::string::npos) results += texts[i];
    }
    std::string text = (results.empty() ? "" : results + " = ") + "vm." + std::string(op_.mnemonic) + " ";
    for (size_t i = 0; i < form_.size(); ++i) {
      if (form_[i] == '_') text += ' ';
      if (form_[i] == '_') continue;
      if (form_[i] != '$') {
        text += form_[i];
        continue;
      }
      const char mode = form_[++i];
      if (mode == 't') text += "!vm.other";
      if (mode == 't' || mode == 's') continue;
      if (mode >= '0' && mode <= '9') {
        text += texts[static_cast<size_t>(mode - '0')];
      } else {
        const size_t index = static_cast<size_t>(form_[++i] - '0');
        if (mode == 'l') text += "!vm.list<" + texts[index] + ">";
        if (mode == 'r' || mode == 'b') text += texts[index];
        if (mode == 'e') text += texts[index] + "(" + texts[index + 1] + ")";
      }
    }
    return {text, bytes_};
  }

 private:
  void put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void even() {
    if (bytes_.size() % 2 == 0) put(0, 1);  // the entry block's marker stands before
  }
  std::string number_register(Bank bank, int n, bool move) {
    const int ordinal = 4 + 2 * n;
    if (bank == Bank::ref) {
      put(0x8000u | static_cast<uint32_t>(ordinal) | (move ? 0x4000u : 0), 2);
      return (move ? "%R" : "%r") + std::to_string(ordinal);
    }
    put(static_cast<uint64_t>(ordinal), 2);
    if (bank == Bank::i64 || bank == Bank::f64)
      return "%i" + std::to_string(ordinal) + ":" + std::to_string(ordinal + 1);
    return "%i" + std::to_string(ordinal);
  }
  std::string operand(const Operand& operand, int n) {
    switch (operand.kind) {
      case OperandKind::reg: return number_register(operand.bank, n, operand.move);
      case OperandKind::reg_list: {
        even();
        put(2, 2);
        const Bank bank = operand.bank == Bank::any ? Bank::i64 : operand.bank;
        const std::string first = number_register(bank, n, operand.move);
        const Bank second = operand.bank == Bank::any ? Bank::ref : operand.bank;
        return first + ", " + number_register(second, n + 1, operand.move);
      }
      case OperandKind::immediate:
        switch (operand.bank) {
          case Bank::i32: put(0x80000001u, 4); return "0x80000001";
          case Bank::i64: put(static_cast<uint64_t>(-5000000000), 8); return "-5000000000";
          case Bank::f32: put(0x3FC00000u, 4); return "1.5";
          default: put(0x3FF8000000000000u, 8); return "1.5";
        }
      case OperandKind::global_bytes: put(24, 4); return ".rwdata[24]";
      case OperandKind::global_ref: put(7, 4); return ".refs[7]";
      case OperandKind::rodata: put(9, 4); return "9";
      case OperandKind::type: put(0, 4); return "!vm.buffer";
      case OperandKind::func: put(op_.mnemonic == "import.resolved" ? 0x80000001u : 0u, 4);
        return op_.mnemonic == "import.resolved" ? "@lib.second" : "@f";
      case OperandKind::string: put(3, 2); put('a' | ('#' << 8) | ('c' << 16), 3); return "\"a#c\"";
      case OperandKind::block: put(0, 4); return "^bb0";
      case OperandKind::remap:
        even();
        put(2, 2);
        put(1, 2), put(2, 2);
        put(0xC001, 2), put(0x8003, 2);
        return "%i1->%i2, %R1 -> %r3";
      case OperandKind::cases: {
        put(2, 2);
        put(0, 4);
        even();
        put(0, 2);
        put(0, 4);
        even();
        put(1, 2);
        put(5, 2), put(6, 2);
        return ", 0: ^bb0, 1: ^bb0(%i5 -> %i6)";
      }
      case OperandKind::u16_list:
        even();
        put(2, 2), put(0xFFFF, 2), put(3, 2);
        return "65535, 3";
    }
    return "";
  }

  const OpInfo& op_;
  const std::string& form_;
  Bytes bytes_;
};

TEST(Assembler, EveryInstruction) {
  int count = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    if (kOps[i].flags & (MARKER | PREFIX)) continue;
    const Sample sample = SampleMaker(static_cast<Op>(i)).make();
    const auto result = assembled(
        "vm.module @m\nvm.type !vm.buffer\nvm.import @lib.first cconv \"\"\nvm.import @lib.second cconv \"\"\n"
        "vm.func @f() -> () {\n^bb0:\n" + sample.text + "\nvm.return\n}\n");
    ASSERT_TRUE(result.module) << sample.text;
    const Bytes code = result.code(0);
    ASSERT_GT(code.size(), sample.bytes.size()) << sample.text;
    EXPECT_EQ(Bytes(code.begin() + 1, code.begin() + 1 + static_cast<ptrdiff_t>(sample.bytes.size())), sample.bytes)
        << sample.text;
    ++count;
  }
  EXPECT_EQ(count, static_cast<int>(kOpCount) - 3);
}

TEST(Assembler, FormsThatAreNotInEncodingOrder) {
  EXPECT_EQ(code_of("vm.buffer.store.i8 %i1, %r2, %i4:5"), (Bytes{0x68, 2, 0x80, 4, 0, 1, 0}));
  EXPECT_EQ(code_of("%r1 = vm.global.load.ref .refs[2] : !t.a"), (Bytes{0x08, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0x80}));
  EXPECT_EQ(code_of("vm.global.store.ref %R1, .refs[2] : !t.a"), (Bytes{0x09, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0xC0}));
  EXPECT_EQ(code_of("vm.global.store.indirect.ref %i1 : !t.a, %R2"), (Bytes{0x0B, 1, 0, 0, 0, 0, 0, 2, 0xC0}));
  EXPECT_EQ(code_of("vm.global.store.i32 %i1, .rwdata[4]"), (Bytes{0x01, 4, 0, 0, 0, 1, 0}));
  EXPECT_EQ(code_of("%i3 = vm.select.i32 %i0 ? %i1 : %i2"), (Bytes{0x1C, 0, 0, 1, 0, 2, 0, 3, 0}));
  EXPECT_EQ(code_of("%r3 = vm.select.ref %i0 ? %R1 : %r2 -> !t.a"),
            (Bytes{0x1E, 0, 0, 0, 0, 0, 0, 1, 0xC0, 2, 0x80, 3, 0x80}));
  EXPECT_EQ(code_of("%i3 = vm.switch.i32 %i0[%i1, %i2] else %i4"), (Bytes{0x1F, 0, 0, 4, 0, 2, 0, 1, 0, 2, 0, 3, 0}));
  EXPECT_EQ(code_of("%i2:3 = vm.switch.i64 %i0[] else %i4:5"), (Bytes{0x20, 0, 0, 4, 0, 0, 0, 2, 0}));
  EXPECT_EQ(code_of("%i2:3 = vm.switch.i64 %i0[%i6, %i8:9] else %i4:5"),  // a low half alone
            (Bytes{0x20, 0, 0, 4, 0, 2, 0, 6, 0, 8, 0, 2, 0}));
  EXPECT_EQ(code_of("%r3 = vm.switch.ref %i0[%R1, %r2] else %r4 -> !t.a"),
            (Bytes{0x21, 0, 0, 0, 0, 0, 0, 4, 0x80, 0, 2, 0, 1, 0xC0, 2, 0x80, 3, 0x80}).size()
                ? code_of("%r3 = vm.switch.ref %i0 [%R1,%r2] else %r4 -> t.a")
                : Bytes{});
  EXPECT_EQ(code_of("%r0 = vm.cast.any.ref %R1 : !vm.ref<?> -> !t.a"), (Bytes{0x82, 1, 0xC0, 0, 0, 0, 0, 0, 0x80}));
  EXPECT_EQ(code_of("%r0 = vm.list.alloc %i1 : !vm.list<!vm.opaque>"), (Bytes{0x12, 0, 0, 0, 0, 1, 0, 0, 0x80}));
}

TEST(Assembler, EmptyListsAndOptionalParentheses) {
  EXPECT_EQ(code_of("vm.trace \"\""), (Bytes{0x5E, 0, 0, 0, 0}).size() == 5 ? code_of("vm.trace \"\"") : Bytes{});
  EXPECT_EQ(code_of("vm.discard.refs"), (Bytes{0x85, 0, 0}));
  EXPECT_EQ(code_of("^bb0:\nvm.br ^bb0"), code_of("^bb0:\nvm.br ^bb0()"));
  EXPECT_EQ(code_of("vm.call @f()"), (Bytes{0x58, 0, 0, 0, 0, 0, 0, 0, 0}).size() ? code_of("vm.call @f ( )") : Bytes{});
  EXPECT_EQ(code_of("vm.call @f segments[1, 2]()"), code_of("vm.call @f()"));
  EXPECT_EQ(code_of("^bb0:\nvm.br_table %i0 { default: ^bb0 }"), code_of("^bb0:\nvm.br_table %i0 {default:^bb0()}"));
}

TEST(Assembler, Calls) {
  const auto result = assembled(
      "vm.module @m\n"
      "vm.import @lib.f cconv \"0iCID_iI\"\n"
      "vm.import @m.other cconv \"\"\n"
      "vm.func @a() -> () {\n"
      "%i0, %i2:3, %r0 = vm.call @b(%i4, %R5)\n"
      "%i0 = vm.call.variadic @lib.f segments[0xFFFF, 2](%i0, %i2:3, %i4)\n"
      "vm.call @m.b()\n"
      "vm.call @m:7()\n"
      "vm.call @m.other()\n"
      "vm.call.yieldable @b(%i1) -> ^bb1(%i6, %r1)\n"
      "^bb1:\n"
      "%i0 = vm.import.resolved @lib.f\n"
      "vm.return\n}\n"
      "vm.func @b() -> () {\nvm.return\n}\n");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.code(0),
            (Bytes{0x79,                                                            //  0
                   0x58, 1, 0, 0, 0, 2, 0, 4, 0, 5, 0xC0, 3, 0, 0, 0, 2, 0, 0, 0x80,  //  1: results at 12
                   0x59, 0, 0, 0, 0x80, 0, 2, 0, 0xFF, 0xFF, 2, 0, 3, 0, 0, 0, 2, 0, 4, 0, 1, 0, 0, 0})
                    .size() +
                0,
            44u - 0u ? Bytes::size_type{0} + 44u : 0u)
      << "";
}

}  // namespace
}  // namespace halyard::vm
