// The bytes of every instruction, from its form and its operands, and special cases.
#include "assembler_testing.h"
#include "vm/format/opcodes.h"
#include "vm/text/vmasm_forms.h"

namespace halyard::vm {
namespace {

// -----------------------------------------------------------------------------------------------

// The text of an instruction, created from its form, and the expected bytes, created from its operands, both
// without the encoder.
struct Sample {
  std::string text;
  ByteVector bytes;
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
    std::string text = (results.empty() ? "" : results + " = ") + "vm." + std::string(op_.mnemonic()) + " ";
    for (size_t i = 0; i < form_.size(); ++i) {
      if (form_[i] == '_' || form_[i] == '~') text += ' ';
      if (form_[i] == '_' || form_[i] == '~') continue;
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
    if (bytes_.size() % 2 == 0) put(0, 1);  // after the entry block's marker
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
      case OperandKind::reg:
        return number_register(operand.bank, n, operand.move);
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
          case Bank::i32:
            put(0x80000001u, 4);
            return "0x80000001";
          case Bank::i64:
            put(static_cast<uint64_t>(-5000000000), 8);
            return "-5000000000";
          case Bank::f32:
            put(0x3FC00000u, 4);
            return "1.5";
          default:
            put(0x3FF8000000000000u, 8);
            return "1.5";
        }
      case OperandKind::global_bytes:
        put(24, 4);
        return ".rwdata[24]";
      case OperandKind::global_ref:
        put(7, 4);
        return ".refs[7]";
      case OperandKind::rodata:
        put(9, 4);
        return "9";
      case OperandKind::type:
        put(0, 4);
        return "!vm.buffer";
      case OperandKind::func:
        put(op_.mnemonic() == "import.resolved" ? 0x80000001u : 0u, 4);
        return op_.mnemonic() == "import.resolved" ? "@lib.second" : "@f";
      case OperandKind::string:
        put(3, 2);
        put('a' | ('#' << 8) | ('c' << 16), 3);
        return "\"a#c\"";
      case OperandKind::block:
        put(0, 4);
        return "^bb0";
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
  ByteVector bytes_;
};

TEST(Assembler, EveryInstruction) {
  int count = 0;
  for (size_t i = 0; i < kOpCount; ++i) {
    if (kOps[i].flags & (MARKER | PREFIX)) continue;
    const Sample sample = SampleMaker(static_cast<Op>(i)).make();
    const auto result = assembled(
        "vm.module @m\nvm.type !vm.buffer\nvm.import @lib.first cconv \"\"\nvm.import @lib.second cconv "
        "\"\"\n"
        "vm.func @f() -> () {\n^bb0:\n" +
        sample.text + "\nvm.return\n}\n");
    ASSERT_TRUE(result.module) << sample.text;
    const ByteVector code = result.code(0);
    ASSERT_GT(code.size(), sample.bytes.size()) << sample.text;
    EXPECT_EQ(ByteVector(code.begin() + 1, code.begin() + 1 + static_cast<ptrdiff_t>(sample.bytes.size())),
              sample.bytes)
        << sample.text;
    ++count;
  }
  EXPECT_EQ(count, static_cast<int>(kOpCount) - 3);
}

TEST(Assembler, FormsThatAreNotInEncodingOrder) {
  expect_code("vm.buffer.store.i8 %i1, %r2, %i4:5", {0x68, 2, 0x80, 4, 0, 1, 0});
  expect_code("%r1 = vm.global.load.ref .refs[2] : !t.a", {0x08, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0x80});
  expect_code("vm.global.store.ref %R1, .refs[2] : !t.a", {0x09, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0xC0});
  expect_code("vm.global.store.indirect.ref %i1 : !t.a, %R2", {0x0B, 1, 0, 0, 0, 0, 0, 2, 0xC0});
  expect_code("%R2 = vm.global.load.indirect.ref %i1 : !t.a", {0x0A, 1, 0, 0, 0, 0, 0, 2, 0xC0});
  expect_code("vm.global.store.i32 %i1, .rwdata[4]", {0x01, 4, 0, 0, 0, 1, 0});
  expect_code("%i3 = vm.select.i32 %i0 ? %i1 : %i2", {0x1C, 0, 0, 1, 0, 2, 0, 3, 0});
  expect_code("%i6:7 = vm.select.i64 %i0 ? %i2:3 : %i4:5", {0x1D, 0, 0, 2, 0, 4, 0, 6, 0});
  expect_code("%r3 = vm.select.ref %i0 ? %R1 : %r2 -> !t.a",
              {0x1E, 0, 0, 0, 0, 0, 0, 1, 0xC0, 2, 0x80, 3, 0x80});
  expect_code("%i3 = vm.switch.i32 %i0[%i1, %i2] else %i4", {0x1F, 0, 0, 4, 0, 2, 0, 1, 0, 2, 0, 3, 0});
  expect_code("%i2:3 = vm.switch.i64 %i0[] else %i4:5", {0x20, 0, 0, 4, 0, 0, 0, 2, 0});
  // The low half of a pair stands for a 64-bit entry.
  expect_code("%i2:3 = vm.switch.i64 %i0[%i6, %i8:9] else %i4:5", {0x20, 0, 0, 4, 0, 2, 0, 6, 0, 8, 0, 2, 0});
  expect_code("%r3 = vm.switch.ref %i0[%R1, %r2] else %r4 -> !t.a",
              {0x21, 0, 0, 0, 0, 0, 0, 4, 0x80, 2, 0, 1, 0xC0, 2, 0x80, 3, 0x80});
  expect_code("%r0 = vm.cast.any.ref %R1 : !vm.ref<?> -> !t.a", {0x82, 1, 0xC0, 0, 0, 0, 0, 0, 0x80});
  expect_code("%r0 = vm.list.alloc %i1 : !vm.list<!vm.opaque>", {0x12, 0, 0, 0, 0, 1, 0, 0, 0x80});
}

TEST(Assembler, EmptyListsAndOptionalParentheses) {
  expect_code("vm.trace \"\"", {0x5E, 0, 0, 0, 0});
  expect_code("vm.print \"ab\", %R1", {0x5F, 2, 0, 'a', 'b', 1, 0, 1, 0xC0});
  expect_code("vm.discard.refs", {0x85, 0, 0});
  for (const char* edge : {"^bb0", "^bb0()", "^bb0( )"})
    expect_code(std::string("^bb0:\nvm.br ") + edge, {0x56, 0, 0, 0, 0, 0, 0});
  for (const char* call : {"vm.call @f()", "vm.call @f ( )", "vm.call @f segments[1, 2]()", "call @m.f()"})
    expect_code(call, {0x58, 0, 0, 0, 0, 0, 0, 0, 0});
  for (const char* table : {"vm.br_table %i0 { default: ^bb0 }", "br_table %i0{default:^bb0()}"})
    expect_code(std::string("^bb0:\n") + table, {0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST(Assembler, ResultsOfInstructionsWithoutOnesAreIgnored) {
  expect_code("%i5 = vm.list.resize %r0, %i1", {0x15, 0, 0x80, 1, 0});
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
  const ByteVector expected = {
      0x79,                                                                             // 0
      0x58, 1,    0, 0, 0,    2,    0, 4, 0,    5,    0xC0, 3, 0, 0, 0, 2, 0, 0, 0x80,  // 1
      0x59, 0,    0, 0, 0x80, 0,    2, 0, 0xFF, 0xFF, 2,    0, 3, 0, 0, 0, 2, 0, 4,    0,
      1,    0,    0, 0,                                                                       // 20
      0x58, 1,    0, 0, 0,    0,    0, 0, 0,    0,                                            // 44
      0x58, 7,    0, 0, 0,    0,    0, 0, 0,    0,                                            // 54
      0x58, 1,    0, 0, 0x80, 0,    0, 0, 0,    0,                                            // 64
      0x87, 1,    0, 0, 0,    0,    1, 0, 1,    0,    94,   0, 0, 0, 2, 0, 6, 0, 1,    0x80,  // 74
      0x79, 0x5C, 0, 0, 0,    0x80, 0, 0,                                                     // 94
      0x5A, 0,    0, 0,                                                                       // 102
  };
  EXPECT_EQ(result.code(0), expected);
}

TEST(Assembler, ConditionsAndTables) {
  expect_code("vm.cond_br %i0, ^bb1(%i1 -> %i2), ^bb1\n^bb1:",
              {0x57, 0, 0, 20, 0, 0, 0, 1, 0, 1, 0, 2, 0, 20, 0, 0, 0, 0, 0, 0x79});
  // A 64-bit pair in a remap is its low half.
  expect_code("^bb7:\nvm.cond_break %i0, ^bb7(%i0:1->%i2:3)", {0x60, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0});
  expect_code("^bb0:\nvm.br_table %i1 { default: ^bb0, 0: ^bb0(%i2 -> %i3), 1: ^bb0 }",
              {0x83, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0});
}

TEST(Assembler, TheFirstLabelNamesTheEntryBlock) {
  const auto named = assembled(in_function("^bb5:\n^bb6:"));
  ASSERT_TRUE(named.module);
  EXPECT_EQ(named.code(0), (ByteVector{0x79, 0x79, 0x5A, 0, 0, 0}));
  EXPECT_EQ(named.module->function_descriptors()->Get(0)->block_count(), 2);
}

TEST(Assembler, IntegerConstants) {
  const auto i32 = [](const std::string& text, uint32_t value) {
    expect_code("%i0 = vm.const.i32 " + text,
                {0x0D, static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
                 static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24), 0, 0});
  };
  i32("42", 42);
  i32("-1", 0xFFFFFFFF);
  i32("+7", 7);
  i32("0xFFFFFFFF", 0xFFFFFFFF);
  i32("4294967295", 0xFFFFFFFF);
  i32("-2147483648", 0x80000000);
  i32("010", 8);
  for (const char* const text : {"0x1FFFFFFFF", "4294967296", "-2147483649", "99999999999999", "08", "5.7",
                                 "5f", "0x", "0xg", "1_000", "1e3", "7abc", "0b1", "1 2", "1234567890123456"})
    error_of(in_function(std::string("%i0 = vm.const.i32 ") + text));
  error_of(in_function("%i0 = vm.const.i32 abc"));
  error_of(in_function("%i0 = vm.const.i32"));
  error_of(in_function("%i0 = vm.const.i32 -"));
  error_of(in_function("%i0 = vm.const.i32 1, 2"));

  const auto i64 = [](const std::string& text, uint64_t value) {
    ByteVector bytes = {0x0F};
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
    bytes.insert(bytes.end(), {2, 0});
    expect_code("%i2:3 = vm.const.i64 " + text, bytes);
  };
  i64("-9223372036854775808", uint64_t{1} << 63);
  i64("9223372036854775807", INT64_MAX);
  i64("0x7FFFFFFFFFFFFFFF", INT64_MAX);
  i64("0000000000000000000000000000017", 15);  // 31 characters
  error_of(in_function("%i2:3 = vm.const.i64 9223372036854775808"));
  error_of(in_function("%i2:3 = vm.const.i64 -9223372036854775809"));
  error_of(in_function("%i2:3 = vm.const.i64 0x8000000000000000"));
  error_of(in_function("%i2:3 = vm.const.i64 99999999999999999999999"));
  error_of(in_function("%i2:3 = vm.const.i64 00000000000000000000000000000017"));  // 32
}

TEST(Assembler, FloatConstants) {
  const auto f32 = [](const std::string& text, uint32_t value) {
    expect_code("%i0 = vm.const.f32 " + text,
                {0xE0, 0x05, static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8),
                 static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 24), 0, 0});
  };
  f32("1.5", 0x3FC00000);
  f32("-0", 0x80000000);
  f32("+.5e1", 0x40A00000);
  f32("0x1.8p1", 0x40400000);
  f32("-0X1P-126", 0x80800000);
  f32("nan", 0x7FC00000);
  f32("inf", 0x7F800000);
  f32("-infinity", 0xFF800000);
  f32("16777217", 0x4B800000);  // to nearest even
  f32("3.40282347e38", 0x7F7FFFFF);
  for (const char* bad : {"1.5f", "1e39", "-1e39", "1e-39", "1e-50", "0x1p-127", "0x1p200", "abc", "--1",
                          "+-1", "0x", "0xnan", "1.5 2", "1,5", ""})
    error_of(in_function(std::string("%i0 = vm.const.f32 ") + bad));
  expect_code("%i0:1 = vm.const.f64 -2.5", {0xE1, 0x05, 0, 0, 0, 0, 0, 0, 0x04, 0xC0, 0, 0});
  error_of(in_function("%i0:1 = vm.const.f64 1e309"));
  error_of(in_function("%i0:1 = vm.const.f64 1e-310"));
}

// ----------------------------------------------------------------------------------------------

TEST(Assembler, LinesCommentsAndPrefixes) {
  const auto result = assembled(
      "# a comment\r\n"
      "\t vm.module\t@m // another\r\n"
      "\r\n"
      "[00A0] vm.rodata[0] = \"a // b # c, d = e\" # and one\r\n"
      "[x] vm.func @f() -> () {\n"
      "  [0001]^bb0:\n"
      "[0002]    %i1  =  add.i32   %i1 ,%i0\n"
      "vm.fail %i0, \"x//y\"//z\n"
      "}");
  ASSERT_TRUE(result.module);
  EXPECT_EQ(result.rodata(0), "a // b # c, d = e");
  EXPECT_EQ(result.code(0), (ByteVector{0x79, 0x22, 1, 0, 0, 0, 1, 0, 0x5B, 0, 0, 4, 0, 'x', '/', '/', 'y'}));
}

TEST(Assembler, RegisterNumbers) {
  expect_code("%i0x10 = vm.add.i32 %i010, %i1", {0x22, 8, 0, 1, 0, 16, 0});
  for (const char* const text :
       {"%i0 = vm.add.i32 %i0, %i1xyz", "%i0a = vm.add.i32 %i0, %i1", "%i0 = vm.add.i32 %i0, %i08",
        "%i0 = vm.add.i32 %i0, %i1.5", "%i2:3 = vm.ext.i32.i64.s %i0_", "%i2:3a = vm.ext.i32.i64.s %i0"})
    error_of(in_function(text));
  expect_code("%r0 = vm.assign.ref %R8191", {0x86, 0xFF, 0xDF, 0, 0x80});
  expect_code("%i16383 = vm.const.i32.zero", {0x0C, 0xFF, 0x3F});
  expect_code("%i1:2 = vm.const.i64.zero", {0x0E, 1, 0});  // odd pairs are rejected by the loader
  const auto counts =
      assembled(in_function("%i2:3 = vm.const.i64.zero\n%r4 = vm.const.ref.zero\nvm.discard.refs %r5"));
  EXPECT_EQ(counts.module->function_descriptors()->Get(0)->i32_register_count(), 4);
  EXPECT_EQ(counts.module->function_descriptors()->Get(0)->ref_register_count(), 6);

  // The encoding allows more, but such functions cannot be loaded.
  EXPECT_EQ(
      error_of(in_function("%i16384 = vm.const.i32.zero"), Code::OUT_OF_RANGE),
      "t.vmasm:3: the result: register '%i16384' is out of range; a function that can be loaded has %i0 to "
      "%i16383");
  error_of(in_function("%i16383:16384 = vm.const.i64.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%i32767 = vm.const.i32.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%r8192 = vm.const.ref.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%r16383 = vm.const.ref.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%i-1 = vm.const.i32.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%i99999999999999999999999 = vm.const.i32.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%r16384 = vm.const.ref.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%r-1 = vm.const.ref.zero"), Code::OUT_OF_RANGE);
  error_of(in_function("%ix = vm.const.i32.zero"));
  error_of(in_function("%f0 = vm.const.f32 1"));
}

}  // namespace
}  // namespace halyard::vm
