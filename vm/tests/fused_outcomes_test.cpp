// Every fused instruction that decides something (a branch, a loop, an access with bounds), with each of its
// outcomes: the program behaves as without fusing, also where the interpreter takes samples. The rows come
// from decoded_ops.inc, so a new one is tested without a new test, and each program is known to contain the
// instruction that it is for.
#include <algorithm>
#include <array>
#include <limits>

#include "machine_testing.h"
#include "vm/decode/code.h"
#include "vm/decode/words.h"
#include "vm/format/opcode_traits.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"

namespace halyard::vm::test {
namespace {

enum class Form { plain, immediate, immediate_left, loop, loop_by, last, at_sum, at_kept_sum, at_product };

struct FusedRow {
  Form form;
  uint16_t
      op;  // the comparison or the access; of `last`, the instruction before the loop, an Op or DecodedOp
  DecodedOp fused;
  DecodedOp loop = DecodedOp::kBefore;  // of `last`
};

constexpr FusedRow kFusedRows[] = {
#define FUSED_ROW(form, op, fused) {Form::form, static_cast<uint16_t>(Op::op), DecodedOp::fused},
#define BRANCH(op) FUSED_ROW(plain, op, br_##op)
#define BRANCH_IMMEDIATE(op) FUSED_ROW(immediate, op, br_##op##_imm)
#define BRANCH_IMMEDIATE_LEFT(op) FUSED_ROW(immediate_left, op, br_##op##_imm_left)
#define LOOP(op) FUSED_ROW(loop, op, loop_##op)
#define LOOP_BY(op) FUSED_ROW(loop_by, op, loop_by_##op)
#define LAST_OF(kind, first, loop) \
  {Form::last, static_cast<uint16_t>(kind::first), DecodedOp::first##_last_of_##loop, DecodedOp::loop},
#define INDEXED(op) FUSED_ROW(at_sum, op, op##_at_sum)
#define INDEXED_KEPT(op) FUSED_ROW(at_kept_sum, op, op##_at_kept_sum)
#define INDEXED_PRODUCT(op) FUSED_ROW(at_product, op, op##_at_product)
#include "vm/decode/decoded_ops.inc"
#undef FUSED_ROW
};

const OpInfo& op_of(const FusedRow& row) { return info(static_cast<Op>(row.op)); }

std::string type_text(Bank bank) {
  switch (bank) {
    case Bank::i64:
      return "i64";
    case Bank::f32:
      return "f32";
    case Bank::f64:
      return "f64";
    case Bank::ref:
      return "!vm.buffer";
    default:
      return "i32";
  }
}

// A register of a bank. Wide ones are the pair of this number.
std::string register_text(Bank bank, int number) {
  if (bank == Bank::ref) return fmt::format("%r{}", number);
  return is_wide(bank) ? fmt::format("%i{}:{}", 2 * number, 2 * number + 1) : fmt::format("%i{}", number);
}

std::string argument_text(Bank bank, int number) {
  return register_text(bank, number) + ": " + type_text(bank);
}

// One program with and without fusing, and the calls whose outcomes are compared.
class FusedAndNot {
 public:
  FusedAndNot(const std::string& text, DecodedOp expected) : text_(text) {
    plain_.fuse = false;
    // Takes a sample at each branch, or counts branches alone; no function gets hot.
    sampled_.queue = std::make_shared<CompileQueue>(Sampling{.branches = 1, .hot = UINT32_MAX});
    counted_.queue = std::make_shared<CompileQueue>(Sampling{.branches = UINT32_MAX, .hot = UINT32_MAX});
    for (Machine* machine : {&plain_, &fused_, &sampled_, &counted_}) machine->add(text);
    expect_fused(expected);
  }

  // `arguments` makes the arguments of each call anew. Returns the outcome as text: the results or the
  // failure, and the contents of a buffer or list.
  template <typename Arguments>
  std::string call(Arguments&& arguments) {
    const std::string fused = outcome(fused_, arguments);
    for (Machine* machine : {&plain_, &sampled_, &counted_})
      EXPECT_EQ(fused, outcome(*machine, arguments)) << text_;
    return fused;
  }

 private:
  template <typename Arguments>
  static std::string outcome(Machine& machine, Arguments&& arguments) {
    const Values values = arguments(machine);
    const Result<Values> results = machine.call("f", values);
    std::string text = results ? "" : results.error().text();
    if (results)
      for (const Variant& result : *results) text += to_text(result) + " ";
    for (const Variant& value : values) text += contents(value.object());
    return text;
  }

  static std::string contents(Object* object) {
    std::string text;
    if (object && object->type() == &Buffer::kType)
      for (const uint8_t byte : static_cast<Buffer*>(object)->span()) text += fmt::format(" {:02x}", byte);
    if (object && object->type() == &List::kType)
      for (uint32_t i = 0; i < static_cast<List*>(object)->size(); ++i)
        text += " " + to_text(*static_cast<List*>(object)->get(i));
    return text;
  }

  void expect_fused(DecodedOp expected) {
    const auto module = ASSERT_VALUE(fused_.load(text_));
    ASSERT_OK(module->code(0));  // verifies
    const auto code = ASSERT_VALUE(decode_function(*module, 0, {}));
    EXPECT_TRUE(std::ranges::any_of(
        code->words, [&](const Word& word) { return word.op == static_cast<uint16_t>(expected); }))
        << "is not fused:\n"
        << text_;
  }

  std::string text_;
  Machine plain_, fused_, sampled_, counted_;
};

// ---- branches

std::vector<Variant> values_of(Bank bank) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (bank) {
    case Bank::i64:
      return {i64(0), i64(-5), i64(7), i64(INT64_MIN), i64(INT64_MAX), i64(int64_t{1} << 32), i64(-32768)};
    case Bank::f32:
      return {f32(0), f32(-0.0f), f32(1), f32(-1), f32(kNaN), f32(kInfinity), f32(-kInfinity)};
    case Bank::f64:
      return {f64(0), f64(-0.0), f64(1), f64(-1), f64(kNaN), f64(kInfinity), f64(-kInfinity)};
    default:
      return {i32(0), i32(-5), i32(7), i32(INT32_MIN), i32(INT32_MAX), i32(65536), i32(-32768)};
  }
}

// A function that returns 1 or 2 by the comparison of its arguments. A constant is one of them.
std::string branch_program(const FusedRow& row, std::optional<int> constant) {
  const OpInfo& op = op_of(row);
  const Bank bank = op.operands[0].bank;
  const bool unary = op.operand_count == 2;
  const bool left = row.form == Form::immediate_left;
  const std::string first = register_text(bank, left ? 1 : 0), second = register_text(bank, left ? 0 : 1);
  std::string text = "vm.module @m\nvm.func @f(" + argument_text(bank, 0);
  if (!unary && !constant) text += ", " + argument_text(bank, 1);
  text += ") -> (i32) {\n";
  if (constant)
    text += fmt::format("  {} = vm.const.{} {}\n", left ? first : second, type_text(bank), *constant);
  return text + fmt::format(R"(  %i8 = vm.{} {}{}
  vm.cond_br %i8, ^bb1(), ^bb2()
^bb1:
  %i10 = vm.const.i32 1
  vm.return %i10
^bb2:
  %i10 = vm.const.i32 2
  vm.return %i10
}}
)",
                            op.mnemonic(), first, unary ? "" : ", " + second);
}

TEST(FusedOutcomes, BranchesGoBothWays) {
  for (const FusedRow& row : kFusedRows) {
    const bool has_constant = row.form == Form::immediate || row.form == Form::immediate_left;
    if (row.form != Form::plain && !has_constant) continue;
    const OpInfo& op = op_of(row);
    const Bank bank = op.operands[0].bank;
    std::string outcomes;
    if (bank == Bank::ref) {
      FusedAndNot program(branch_program(row, {}), row.fused);
      outcomes += program.call([](Machine&) { return Values{null()}; });
      outcomes += program.call([](Machine& machine) { return Values{machine.thing()}; });
    } else if (has_constant) {
      for (const int constant : {0, 7, -5, 32767, -32768}) {
        FusedAndNot program(branch_program(row, constant), row.fused);
        for (const Variant& x : values_of(bank))
          outcomes += program.call([&](Machine&) { return Values{x}; });
      }
    } else {
      FusedAndNot program(branch_program(row, {}), row.fused);
      for (const Variant& x : values_of(bank))
        for (const Variant& y : values_of(bank)) {
          Values both = {x};
          if (op.operand_count == 3) both.push_back(y);
          outcomes += program.call([&](Machine&) { return both; });
        }
    }
    EXPECT_NE(outcomes.find("i32=1"), std::string::npos) << op.mnemonic() << " is never true";
    EXPECT_NE(outcomes.find("i32=2"), std::string::npos) << op.mnemonic() << " is never false";
  }
}

// ---- loops

struct Count {
  int64_t from, bound;
  int step;
};
// All end soon, also where the counter wraps around.
std::vector<Count> counts(Op compare) {
  const bool wide = is_wide(info(compare).operands[0].bank);
  const int64_t least = wide ? INT64_MIN : INT32_MIN;
  const int64_t most = wide ? INT64_MAX : INT32_MAX;
  switch (compare) {
    case Op::cmp_ne_i32:
    case Op::cmp_ne_i64:
      return {{0, 1, 1}, {0, 6, 3}, {5, 2, -1}, {most - 1, least + 1, 1}, {least, most, -1}};
    case Op::cmp_lt_i32_u:
    case Op::cmp_lt_i64_u:
      return {{0, 0, 1}, {0, 5, 2}, {-3, -1, 1}, {-2, 5, -1}, {3, 6, -2}};
    default:
      return {{0, 0, 1}, {0, 5, 2}, {-3, 1, 1}, {least + 2, 0, -1}, {most - 1, most, 1}};
  }
}

// A function of an index, an object, a counter, a bound, and of a step, unless that is a constant. It returns
// the counter and the turns. `last` is the end of the loop's body; `before` sets the registers from 30 on
// that it needs.
std::string loop_program(Op compare, std::optional<int> constant_step, std::string_view last,
                         std::string_view before = {}) {
  const OpInfo& op = info(compare);
  const Bank bank = op.operands[0].bank;
  const std::string type = type_text(bank);
  const int first = is_wide(bank) ? 1 : 2;
  const std::string counter = register_text(bank, first), bound = register_text(bank, first + 1),
                    step = register_text(bank, first + 2);
  std::string text =
      fmt::format("vm.module @m\nvm.func @f(%i0:1: i64, %r0: !vm.buffer, {}, {}{}) -> ({}, i32) {{\n",
                  argument_text(bank, first), argument_text(bank, first + 1),
                  constant_step ? "" : ", " + argument_text(bank, first + 2), type);
  if (constant_step) text += fmt::format("  {} = vm.const.{} {}\n", step, type, *constant_step);
  return text + fmt::format(R"({}  %i8 = vm.const.i32.zero
  %i10 = vm.const.i32 1
  vm.br ^bb1()
^bb1:
  %i8 = vm.add.i32 %i8, %i10
{}  {} = vm.add.{} {}, {}
  %i12 = vm.{} {}, {}
  vm.cond_br %i12, ^bb1(), ^bb2()
^bb2:
  vm.return {}, %i8
}}
)",
                            before, last, counter, type, counter, step, op.mnemonic(), counter, bound,
                            counter);
}

Variant number_of(Bank bank, int64_t value) { return is_wide(bank) ? i64(value) : i32(value); }

Values loop_arguments(Bank bank, const Count& count, bool by_constant, int64_t index, Variant object) {
  Values values = {i64(index), std::move(object), number_of(bank, count.from), number_of(bank, count.bound)};
  if (!by_constant) values.push_back(number_of(bank, count.step));
  return values;
}

TEST(FusedOutcomes, LoopsTurnAndEnd) {
  for (const FusedRow& row : kFusedRows) {
    if (row.form != Form::loop && row.form != Form::loop_by) continue;
    const Op op = static_cast<Op>(row.op);
    const Bank bank = info(op).operands[0].bank;
    const bool by_constant = row.form == Form::loop;
    // A body with an instruction that no loop is fused with.
    constexpr std::string_view kLast = "  %i14 = vm.xor.i32 %i8, %i10\n";
    for (const Count& count : counts(op)) {
      FusedAndNot program(loop_program(op, by_constant ? std::optional(count.step) : std::nullopt, kLast),
                          row.fused);
      program.call([&](Machine&) { return loop_arguments(bank, count, by_constant, 0, null()); });
    }
  }
}

struct EndOfBody {
  uint16_t op;  // an Op or DecodedOp
  const char* text;
  const char* before;  // sets its registers
};
const EndOfBody kEndsOfBodies[] = {
    {static_cast<uint16_t>(Op::add_i32), "  %i30 = vm.add.i32 %i30, %i32\n",
     "  %i30 = vm.const.i32 9\n  %i32 = vm.const.i32 70001\n"},
    {static_cast<uint16_t>(Op::add_i64), "  %i30:31 = vm.add.i64 %i30:31, %i32:33\n",
     "  %i30:31 = vm.const.i64 9\n  %i32:33 = vm.const.i64 70001\n"},
    {static_cast<uint16_t>(Op::add_f32), "  %i30 = vm.add.f32 %i30, %i32\n",
     "  %i30 = vm.const.f32 0.5\n  %i32 = vm.const.f32 0.1\n"},
    {static_cast<uint16_t>(Op::add_f64), "  %i30:31 = vm.add.f64 %i30:31, %i32:33\n",
     "  %i30:31 = vm.const.f64 0.5\n  %i32:33 = vm.const.f64 0.1\n"},
    {static_cast<uint16_t>(DecodedOp::mul_add_f32),
     "  %i34 = vm.mul.f32 %i30, %i32\n  %i30 = vm.add.f32 %i34, %i30\n",
     "  %i30 = vm.const.f32 0.5\n  %i32 = vm.const.f32 0.1\n"},
    {static_cast<uint16_t>(DecodedOp::mul_add_f64),
     "  %i34:35 = vm.mul.f64 %i30:31, %i32:33\n  %i30:31 = vm.add.f64 %i34:35, %i30:31\n",
     "  %i30:31 = vm.const.f64 0.5\n  %i32:33 = vm.const.f64 0.1\n"},
    {static_cast<uint16_t>(Op::buffer_store_i8), "  vm.buffer.store.i8 %i8, %r0, %i0:1\n", ""},
    {static_cast<uint16_t>(Op::buffer_store_i32), "  vm.buffer.store.i32 %i8, %r0, %i0:1\n", ""},
    {static_cast<uint16_t>(Op::buffer_store_i64), "  vm.buffer.store.i64 %i8:9, %r0, %i0:1\n", ""},
    {static_cast<uint16_t>(Op::list_set_i32), "  vm.list.set.i32 %r0, %i0, %i8\n", ""},
};

constexpr uint64_t kBufferBytes = 24;

// Null, objects of other types, a buffer and a list of i32 with `kBufferBytes`, a buffer that programs cannot
// write to, and a list of other elements.
constexpr int kObjects = 6;
Variant object_of(Machine& machine, int number) {
  static constexpr std::array<uint8_t, kBufferBytes> kConstant = {1, 0x82, 3, 0x84, 5, 0x86, 7, 0x88, 9};
  const auto list = [](ElementType type) {
    Ref<List> made = List::create(type);
    EXPECT_TRUE(made->resize(kBufferBytes, kBufferBytes));
    return Variant::ref(std::move(made));
  };
  switch (number) {
    case 0:
      return null();
    case 1:
      return machine.thing();
    case 2: {
      Ref<Buffer> buffer = *Buffer::allocate(kBufferBytes, 0, kBufferBytes);
      for (uint64_t i = 0; i < kBufferBytes; ++i) buffer->data()[i] = static_cast<uint8_t>(0x7D + i);
      return Variant::ref(std::move(buffer));
    }
    case 3:
      return Variant::ref(Buffer::wrap_const(kConstant, {}));
    case 4:
      return list({.value = ValueType::i32});
    default:
      return list({});
  }
}

// The index of a store is an argument, so that a turn of the loop may fail or not.
TEST(FusedOutcomes, LastInstructionsOfLoopsSucceedAndFail) {
  for (const FusedRow& row : kFusedRows) {
    if (row.form != Form::last) continue;
    const auto end = std::ranges::find(kEndsOfBodies, row.op, &EndOfBody::op);
    ASSERT_NE(end, std::end(kEndsOfBodies)) << row.op;
    const auto loop = std::ranges::find(kFusedRows, row.loop, &FusedRow::fused);
    ASSERT_NE(loop, std::end(kFusedRows));
    const Op compare = static_cast<Op>(loop->op);
    const Bank bank = info(compare).operands[0].bank;
    const bool by_constant = loop->form == Form::loop;
    for (const Count& count : counts(compare)) {
      FusedAndNot program(loop_program(compare, by_constant ? std::optional(count.step) : std::nullopt,
                                       end->text, end->before),
                          row.fused);
      const bool uses_object = std::string_view(end->text).find("%r0") != std::string_view::npos;
      for (int object = 0; object < (uses_object ? kObjects : 1); ++object)
        for (const int64_t index : {0, 2, 3, 23, 24, -1})
          program.call([&](Machine& machine) {
            return loop_arguments(bank, count, by_constant, index, object_of(machine, object));
          });
    }
  }
}

// ---- loads and stores at a computed index

// A function of a buffer, the operands of the index, and the value that a store writes. It returns the index,
// if that is kept, and the value.
std::string access_program(const FusedRow& row) {
  const OpInfo& op = op_of(row);
  const Bank bank = op.operands[2].bank;
  const int number = is_wide(bank) ? 3 : 6;
  const std::string value = register_text(bank, number);
  std::string access = fmt::format("vm.{} {}, %r0, %i10:11", op.mnemonic(), value);
  if (op.operands[2].writes) access = fmt::format("{} = vm.{} %r0, %i10:11", value, op.mnemonic());
  const char* const index =
      row.form == Form::at_product
          ? "  %i10:11 = vm.mul.i64 %i0:1, %i2:3\n  %i10:11 = vm.add.i64 %i10:11, %i4:5\n"
          : "  %i10:11 = vm.add.i64 %i0:1, %i2:3\n";
  const bool kept = row.form == Form::at_kept_sum;
  return fmt::format(
      "vm.module @m\nvm.func @f(%r0: !vm.buffer, %i0:1: i64, %i2:3: i64, %i4:5: i64, {}) -> (i64, {}) {{\n"
      "{}  {}\n  vm.return {}, {}\n}}\n",
      argument_text(bank, number), type_text(bank), index, access, kept ? "%i10:11" : "%i4:5", value);
}

TEST(FusedOutcomes, AccessesSucceedAndFail) {
  struct Index {
    int64_t a, b, c;
  };
  // Within the buffer, at its end and beyond for elements of 1, 2, 4 and 8 bytes, and with sums that wrap.
  constexpr Index kIndices[] = {{0, 0, 0},   {1, 1, 0},          {2, 1, 0},         {3, 2, 1},
                                {5, 1, 1},   {11, 1, 0},         {6, 2, -1},        {23, 0, 23},
                                {23, 1, 0},  {24, 1, 0},         {-1, 0, 0},        {-1, 3, 5},
                                {-1, 1, -1}, {INT64_MIN, -1, 3}, {1, 2, INT64_MAX}, {int64_t{1} << 61, 8, 1}};
  for (const FusedRow& row : kFusedRows) {
    if (row.form != Form::at_sum && row.form != Form::at_kept_sum && row.form != Form::at_product) continue;
    const Bank bank = op_of(row).operands[2].bank;
    FusedAndNot program(access_program(row), row.fused);
    for (int object = 0; object < kObjects; ++object)
      for (const Index& index : kIndices)
        program.call([&](Machine& machine) {
          return Values{object_of(machine, object), i64(index.a), i64(index.b), i64(index.c),
                        number_of(bank, 0x1122334455667788)};
        });
  }
}

}  // namespace
}  // namespace halyard::vm::test
