// Which loads read a buffer of the function's own for the last time.
#include "codegen/own_buffers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "loop_programs.h"
#include "program.h"

namespace halyard::vm::test {
namespace {

// A buffer of the function's own in r2; then `body`.
std::string with_own_buffer(std::string_view body) {
  return program("", "%i0:1",
                 "%i12:13 = vm.const.i64 64\n %i14 = vm.const.i32.zero\n"
                 "%r2 = vm.buffer.alloc %i12:13, %i14\n" +
                     std::string(body));
}
std::string reading_loop(int block, std::string_view more = "", std::string_view buffer = "%r2") {
  return loop(block, "%i6:7", "%i8:9", fmt::format("%i11 = vm.buffer.load.i32 {}, %i6:7\n{}", buffer, more));
}

// For each load of 32 bits, in order: whether it is a last read.
std::vector<bool> last_reads(std::string_view text) {
  const auto compiler = Compiler::find();
  EXPECT_TRUE(compiler);
  const TestProgram program(text, {.compiler = *compiler});
  EXPECT_TRUE(program.is_compiled());
  const FunctionCode& code = **program.module->code(0);
  const jit::OwnBuffers buffers(code.words, code.lists, code.ref_slots);
  std::vector<bool> found;
  for (uint32_t at = 0; at < code.words.size(); at += word_count(code.words[at]))
    if (code.words[at].op == static_cast<uint16_t>(Op::buffer_load_i32))
      found.push_back(buffers.is_last_read(at));
  return found;
}

using Found = std::vector<bool>;

TEST(CompiledOwnBuffers, IsReadInTheLastLoop) {
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1))), Found{true});
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1) + reading_loop(4))), (Found{false, true}));
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1) + "vm.discard.refs %r2\n")), Found{true});
  // Other buffers may be read in between, and the length is not read from the bytes.
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1, "vm.buffer.store.i32 %i11, %r1, %i6:7") +
                                       "%i6:7 = vm.buffer.length %r2\n")),
            Found{true});
}

TEST(CompiledOwnBuffers, AnArgumentIsNotTheFunctionsOwn) {
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1, "", "%r0"))), Found{false});
}

TEST(CompiledOwnBuffers, IsReadLaterByTheInterpreter) {
  for (const char* const later :
       {"vm.buffer.copy %r2, %i8:9, %r1, %i8:9, %i8:9\n",
        "%i10 = vm.buffer.compare %r1, %i8:9, %r2, %i8:9, %i8:9\n",
        "%r3 = vm.buffer.clone %r2, %i8:9, %i8:9, %i14\n", "%i6:7 = vm.buffer.hash %r2, %i8:9, %i8:9\n"})
    EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1) + later)), Found{false}) << later;
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1) + "vm.buffer.fill.i32 %r2, %i8:9, %i8:9, %i14\n")),
            Found{true});
}

TEST(CompiledOwnBuffers, OthersReferToIt) {
  // Before the loop, after it, and only on another path.
  EXPECT_EQ(last_reads(with_own_buffer("%r3 = vm.assign.ref %r2\n" + reading_loop(1))), Found{false});
  EXPECT_EQ(last_reads(with_own_buffer(reading_loop(1) + "%r3 = vm.assign.ref %r2\n")), Found{false});
  EXPECT_EQ(last_reads(with_own_buffer("vm.cond_br %i14, ^bb7, ^bb8\n^bb7:\n  %r3 = vm.assign.ref %r2\n"
                                       "  vm.br ^bb8\n^bb8:\n" +
                                       reading_loop(1))),
            Found{false});
}

TEST(CompiledOwnBuffers, TheLoopIsNotInAnother) {
  EXPECT_EQ(last_reads(with_own_buffer(loop(4, "%i2:3", "%i8:9", reading_loop(1)))), Found{true});
  // If the outer loop writes, the inner one is not the last.
  EXPECT_EQ(last_reads(with_own_buffer(
                loop(4, "%i2:3", "%i8:9", "vm.buffer.store.i32 %i14, %r2, %i2:3\n" + reading_loop(1)))),
            Found{false});
  // A loop that the interpreter runs in part.
  EXPECT_EQ(last_reads(with_own_buffer(
                loop(4, "%i2:3", "%i8:9", reading_loop(1) + "vm.buffer.fill.i32 %r1, %i8:9, %i8:9, %i14\n"))),
            Found{false});
  // A new buffer in each iteration.
  EXPECT_EQ(last_reads(program("", "%i0:1",
                               "%i12:13 = vm.const.i64 64\n %i14 = vm.const.i32.zero\n" +
                                   loop(4, "%i2:3", "%i8:9",
                                        "%r2 = vm.buffer.alloc %i12:13, %i14\n"
                                        "vm.buffer.store.i32 %i14, %r2, %i2:3\n" +
                                            reading_loop(1)))),
            Found{false});  // a loop is around it
}

// The loop around the reading one can be entered at two places, so it is none to LLVM.
TEST(CompiledOwnBuffers, TheLoopIsNotInAnIrreducibleCycle) {
  const std::string cycle = R"(
  vm.cond_br %i14, ^bb7, ^bb8
^bb7:
)" + reading_loop(1) + R"(
  vm.br ^bb8
^bb8:
  %i10 = vm.cmp.lt.i64.s %i2:3, %i8:9
  vm.cond_br %i10, ^bb7, ^bb9
^bb9:
)";
  EXPECT_EQ(last_reads(with_own_buffer(cycle)), Found{false});
}

}  // namespace
}  // namespace halyard::vm::test
