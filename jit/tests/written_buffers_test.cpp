// Memory of a function's own buffers that is used again: its bytes are 0, whatever an earlier call wrote.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "codegen/own_buffers.h"
#include "loop_programs.h"
#include "program.h"

namespace halyard::vm::test {
namespace {

constexpr int64_t kWords = 1024;

// A buffer of the function's own in r2; then `writes`; the result is the sum of its words.
std::string summing(std::string_view writes, std::string_view result = "%i16:17") {
  const std::string text =
      program("f32", result,
              "%i12:13 = vm.const.i64 4096\n %i14 = vm.const.i32.zero\n"
              "%r2 = vm.buffer.alloc %i12:13, %i14\n" +
                  std::string(writes) + "%i16:17 = vm.const.i64.zero\n%i18:19 = vm.const.i64 1024\n" +
                  loop(20, "%i6:7", "%i18:19",
                       "%i11 = vm.buffer.load.i32 %r2, %i6:7\n%i20:21 = vm.ext.i32.i64.s %i11\n"
                       "%i16:17 = vm.add.i64 %i16:17, %i20:21\n"));
  return replaced(text, "vm.type !vm.buffer", "vm.type !vm.buffer\nvm.type !vm.list<i32>");
}

// The results of calls with these numbers of words; -1 for a call that fails.
std::vector<int64_t> results(const TestProgram& program, std::span<const int64_t> counts) {
  program.context->keep_spare_blocks();
  std::vector<int64_t> found;
  for (const int64_t count : counts) {
    const std::array<Variant, 5> arguments = {Variant(), Variant(), Variant::i64(count), Variant::i64(3),
                                              Variant::i64(0)};
    const Result<Variant> result = program.call(arguments);
    found.push_back(result ? result->as_i64() : -1);
  }
  return found;
}

constexpr std::array<int64_t, 12> kCounts = {kWords,     0, 3,       0, kWords + 1, 0,
                                             kWords - 1, 2, 1 << 20, 1, kWords,     0};

void expect_zero_again(std::string_view writes) {
  const auto compiler = Compiler::find();
  ASSERT_TRUE(compiler);
  const TestProgram interpreted(summing(writes)), compiled(summing(writes), {.compiler = *compiler});
  ASSERT_TRUE(compiled.is_compiled());
  EXPECT_EQ(results(compiled, kCounts), results(interpreted, kCounts)) << writes;
}

TEST(CompiledWrittenBuffers, StoresOfALoop) {
  expect_zero_again(loop(1, "%i6:7", "%i0:1", "vm.buffer.store.i32 %i6, %r2, %i6:7\n"));
  expect_zero_again(
      loop(1, "%i6:7", "%i0:1", loop(4, "%i22:23", "%i2:3", "vm.buffer.store.i32 %i6, %r2, %i6:7\n")));
  // In an iteration that is not the first.
  expect_zero_again(loop(1, "%i6:7", "%i0:1",
                         "%i11 = vm.cmp.eq.i64 %i6:7, %i2:3\nvm.cond_br %i11, ^bb7, ^bb8\n"
                         "^bb7:\nvm.buffer.store.i32 %i6, %r2, %i6:7\nvm.br ^bb8\n^bb8:\n"));
}

// r2[m][n] += r3[m + k] * r3[k][n] for m below n & 127, n below 8 and k below 9: a number of rows that is not
// known, so a function of its own adds each group of rows. r3 has another size, so that it does not take the
// memory that was r2's.
TEST(CompiledWrittenBuffers, StoresOfGroupsOfRows) {
  expect_zero_again(
      "%i24:25 = vm.const.i64 8192\n%r3 = vm.buffer.alloc %i24:25, %i14\n%i22:23 = vm.const.i64.zero\n"
      "%i33 = vm.const.i32 1065353216\n%i26:27 = vm.const.i64 2048\nvm.buffer.fill.i32 %r3, %i22:23, "
      "%i26:27, %i33\n"
      "%i22:23 = vm.const.i64 127\n%i0:1 = vm.and.i64 %i0:1, %i22:23\n"
      "%i22:23 = vm.const.i64 8\n%i24:25 = vm.const.i64 9\n" +
      loop(1, "%i6:7", "%i0:1",
           loop(4, "%i26:27", "%i22:23",
                loop(7, "%i28:29", "%i24:25",
                     "%i30:31 = vm.add.i64 %i6:7, %i28:29\n%i11 = vm.buffer.load.f32 %r3, %i30:31\n"
                     "%i30:31 = vm.fma.i64 %i28:29, %i22:23, %i26:27\n"
                     "%i32 = vm.buffer.load.f32 %r3, %i30:31\n"
                     "%i30:31 = vm.fma.i64 %i6:7, %i22:23, %i26:27\n"
                     "%i33 = vm.buffer.load.f32 %r2, %i30:31\n"
                     "%i33 = vm.fma.f32 %i11, %i32, %i33\nvm.buffer.store.f32 %i33, %r2, %i30:31\n"))));
}

TEST(CompiledWrittenBuffers, StoresOutsideLoops) {
  expect_zero_again("vm.buffer.store.i32 %i0, %r2, %i0:1\n");
  expect_zero_again(
      "%i11 = vm.cmp.eq.i64 %i0:1, %i2:3\nvm.cond_br %i11, ^bb1, ^bb2\n"
      "^bb1:\nvm.buffer.store.i32 %i0, %r2, %i0:1\nvm.br ^bb2\n^bb2:\n");
}

TEST(CompiledWrittenBuffers, WritesOfTheInterpreter) {
  constexpr std::string_view kFill =
      "%i22:23 = vm.const.i64.zero\n%i24:25 = vm.const.i64 4\n%i26:27 = vm.mul.i64 %i0:1, %i24:25\n"
      "vm.buffer.fill.i32 %r2, %i22:23, %i26:27, %i2\n";
  expect_zero_again(kFill);
  // Between two pieces of compiled code, and after a load that fails.
  expect_zero_again(std::string(kFill) + loop(1, "%i6:7", "%i2:3", "%i11 = vm.buffer.load.i32 %r2, %i6:7\n") +
                    std::string(kFill));
  expect_zero_again(loop(1, "%i6:7", "%i0:1",
                         "%i11 = vm.buffer.load.i32 %r2, %i6:7\n%i11 = vm.add.i32 %i11, %i8\n"
                         "vm.buffer.store.i32 %i11, %r2, %i6:7\n"));
}

TEST(CompiledWrittenBuffers, BuffersOfOtherRegisters) {
  expect_zero_again("%r3 = vm.assign.ref %r2\n" +
                    loop(1, "%i6:7", "%i0:1", "vm.buffer.store.i32 %i6, %r3, %i6:7\n"));
  expect_zero_again("%r3 = vm.buffer.clone %r2, %i4:5, %i12:13, %i14\n" +
                    loop(1, "%i6:7", "%i0:1", "vm.buffer.store.i32 %i6, %r3, %i6:7\n") +
                    "vm.buffer.copy %r3, %i4:5, %r2, %i4:5, %i12:13\n");
}

// The register holds another object at first.
TEST(CompiledWrittenBuffers, ARegisterOfTwoObjects) {
  expect_zero_again(
      "vm.discard.refs %r2\n%i22 = vm.const.i32 16\n%r2 = vm.list.alloc %i22 : !vm.list<i32>\n"
      "vm.discard.refs %r2\n%r2 = vm.buffer.alloc %i12:13, %i14\n" +
      loop(1, "%i6:7", "%i0:1", "vm.buffer.store.i32 %i6, %r2, %i6:7\n"));
}

// ---- the analysis

struct Facts {
  bool tracked = false;
  std::vector<bool> fresh;        // before each enter_compiled word
  std::vector<bool> interpreted;  // whether the interpreter may write from each store on
};

Facts facts(std::string_view writes, uint32_t ref = 2) {
  const auto compiler = Compiler::find();
  EXPECT_TRUE(compiler);
  const TestProgram program(summing(writes), {.compiler = *compiler});
  const FunctionCode& code = **program.module->code(0);
  const jit::OwnBuffers buffers(code.words, code.lists, code.ref_slots);
  Facts found{.tracked = buffers.is_tracked(ref)};
  for (uint32_t at = 0; at < code.words.size(); at += word_count(code.words[at])) {
    if (code.words[at].op == static_cast<uint16_t>(DecodedOp::enter_compiled))
      found.fresh.push_back(buffers.is_fresh(at, ref));
    if (found.tracked && code.words[at].op == static_cast<uint16_t>(Op::buffer_load_i32))
      found.interpreted.push_back(buffers.may_be_interpreted_write(at, ref));
  }
  return found;
}

using Found = std::vector<bool>;

TEST(CompiledWrittenBuffers, AreTrackedInOneRegister) {
  EXPECT_TRUE(facts("").tracked);
  EXPECT_FALSE(facts("", 0).tracked);
  EXPECT_FALSE(facts("%r3 = vm.assign.ref %r2\n").tracked);
  EXPECT_FALSE(facts("%r2 = vm.assign.ref %r1\n").tracked);
}

TEST(CompiledWrittenBuffers, AreFreshUntilAWrite) {
  EXPECT_EQ(facts("").fresh, (Found{false, true}));
  EXPECT_EQ(facts("vm.buffer.fill.i32 %r2, %i4:5, %i12:13, %i2\n").fresh, (Found{false, false}));
  // On one of two paths.
  EXPECT_EQ(facts("%i11 = vm.cmp.eq.i64 %i0:1, %i2:3\nvm.cond_br %i11, ^bb1, ^bb2\n"
                  "^bb1:\nvm.buffer.store.i32 %i0, %r2, %i0:1\nvm.br ^bb2\n^bb2:\n"
                  "%i11 = vm.buffer.compare %r1, %i8:9, %r2, %i8:9, %i8:9\n")
                .fresh,
            (Found{false, true, false}));
}

TEST(CompiledWrittenBuffers, TheInterpreterMayWriteAfterALoad) {
  EXPECT_EQ(facts("").interpreted, Found{false});
  EXPECT_EQ(facts(loop(1, "%i6:7", "%i0:1",
                       "%i11 = vm.buffer.load.i32 %r2, %i6:7\nvm.buffer.store.i32 %i11, %r2, %i6:7\n"))
                .interpreted,
            (Found{true, false}));
}

}  // namespace
}  // namespace halyard::vm::test
