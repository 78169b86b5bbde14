// Functions that would take long to compile: they are refused before LLVM sees them, and stay interpreted;
// the time to compile others counts in the time limit of a call; and nobody waits for the function of
// another.

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "choices.h"
#include "loop_generator.h"
#include "program.h"
#include "vm/compile/compile_queue.h"

namespace halyard::vm::test {
namespace {

using namespace std::chrono_literals;

// A function without arguments whose result is %i0; buffers %r0 and %r1 of 1 KiB, %i6:7 is 0, %i8:9 is 1 and
// %i10:11 the number of turns of loops.
std::string function(std::string_view name, std::string_view body) {
  return fmt::format(R"(vm.export @{0}
vm.func @{0}() -> (i32) {{
  %i0 = vm.const.i32.zero
  %i6:7 = vm.const.i64.zero
  %i8:9 = vm.const.i64 1
  %i10:11 = vm.const.i64 4
  %i12:13 = vm.const.i64 1024
  %i14 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i12:13, %i14
  %r1 = vm.buffer.alloc %i12:13, %i14
  vm.br ^bb1
{1}
  vm.return %i0
}}
)",
                     name, body);
}

std::string module_of(std::string_view functions) {
  return fmt::format("vm.module @m\nvm.type !vm.buffer\n{}", functions);
}

constexpr std::string_view kElement =
    "  %i22 = vm.buffer.load.i32 %r0, %i20:21\n  vm.buffer.store.i32 %i22, %r1, %i20:21\n";

std::string loops_in_a_row(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "^bb{0}:\n  %i20:21 = vm.const.i64.zero\n  vm.br ^bb{1}\n^bb{1}:\n{3}"
        "  %i20:21 = vm.add.i64 %i20:21, %i8:9\n  %i23 = vm.cmp.lt.i64.s %i20:21, %i10:11\n"
        "  vm.cond_br %i23, ^bb{1}, ^bb{2}\n",
        2 * i + 1, 2 * i + 2, 2 * i + 3, kElement);
  return text + fmt::format("^bb{}:", 2 * count + 1);
}

// Loops inside each other, which all close over one branch upwards: from the last block to ^bb1. From there
// each of the tests goes to the head of its loop, or to the next test.
std::string loops_that_share_a_branch(int count) {
  std::string text = fmt::format("^bb1:\n  vm.br ^bb{}\n", count + 2);
  // Tests: ^bb2 to ^bb(count + 1). Heads: ^bb(count + 2) on.
  for (int i = 0; i < count; ++i)
    text += fmt::format(
        "^bb{}:\n  %i22 = vm.add.i32 %i22, %i14\n  %i23 = vm.cmp.lt.i32.s %i22, %i{}\n"
        "  vm.cond_br %i23, ^bb{}, ^bb{}\n",
        i + 2, 24 + i, count + 2 + i, i + 1 < count ? i + 3 : 2 * count + 3);
  for (int i = 0; i < count; ++i)
    text += fmt::format("^bb{}:\n{}  vm.br ^bb{}\n", count + 2 + i, kElement, count + 3 + i);
  text += fmt::format("^bb{}:\n  vm.br ^bb2\n^bb{}:", 2 * count + 2, 2 * count + 3);
  return text;
}

std::string long_loop(int elements) {
  std::string text = "^bb1:\n";
  for (int i = 0; i < elements; ++i) text += kElement;
  return text +
         "  %i20:21 = vm.add.i64 %i20:21, %i8:9\n  %i23 = vm.cmp.lt.i64.s %i20:21, %i10:11\n"
         "  vm.cond_br %i23, ^bb1, ^bb2\n^bb2:";
}

// A loop whose accesses are all at different indices, so that none of their checks stands for another's.
std::string loop_of_different_indices(int elements) {
  std::string text = "^bb1:\n  %i24:25 = vm.add.i64 %i20:21, %i6:7\n";
  for (int i = 0; i < elements; ++i)
    text +=
        "  %i22 = vm.buffer.load.i32 %r0, %i24:25\n  vm.buffer.store.i32 %i22, %r1, %i24:25\n"
        "  %i24:25 = vm.add.i64 %i24:25, %i8:9\n";
  return text +
         "  %i20:21 = vm.add.i64 %i20:21, %i8:9\n  %i23 = vm.cmp.lt.i64.s %i20:21, %i10:11\n"
         "  vm.cond_br %i23, ^bb1, ^bb2\n^bb2:";
}

// A loop that counts in many registers, all of which each place that leaves compiled code writes.
std::string loop_of_counters(int counters) {
  std::string text = "^bb1:\n";
  for (int i = 0; i < counters; ++i)
    text += fmt::format("  %i{}:{} = vm.const.i64 {}\n", 30 + 2 * i, 31 + 2 * i, 5 * i);
  text += "  vm.br ^bb2\n^bb2:\n";
  for (int i = 0; i < counters; ++i)
    text += fmt::format(
        "  %i22 = vm.buffer.load.i32 %r0, %i{0}:{1}\n  vm.buffer.store.i32 %i22, %r1, %i{0}:{1}\n"
        "  %i{0}:{1} = vm.add.i64 %i{0}:{1}, %i8:9\n",
        30 + 2 * i, 31 + 2 * i);
  return text +
         "  %i20:21 = vm.add.i64 %i20:21, %i8:9\n  %i23 = vm.cmp.lt.i64.s %i20:21, %i10:11\n"
         "  vm.cond_br %i23, ^bb2, ^bb3\n^bb3:";
}

std::string no_loop(int additions) {
  std::string text = "^bb1:\n";
  for (int i = 0; i < additions; ++i)
    text += fmt::format("  %i{} = vm.add.i32 %i{}, %i14\n", 20 + i % 7, 20 + i % 5);
  return text;
}

const Compiler& compiler() { return **Compiler::find(); }

Result<CompiledFunction> compile(const std::string& text) {
  const Ref<LoadedModule> module = load(text, {.verify_eagerly = true});
  const auto code = *decode_function(*module, 0, {.fuse = false, .entries = Entries::calls});
  return compiler().compile(*code, {});
}

void expect_compiled(const std::string& text) { EXPECT_OK(compile(text)); }

void expect_refused(const std::string& text, std::string_view number) {
  const Result<CompiledFunction> compiled = compile(text);
  EXPECT_FAILS(UNIMPLEMENTED, "'m.f' stays interpreted", compiled);
  EXPECT_FAILS(UNIMPLEMENTED, number, compiled);
}

TEST(CompiledCost, LoopsInARow) {
  expect_compiled(module_of(function("f", loops_in_a_row(40))));
  expect_refused(module_of(function("f", loops_in_a_row(100))), "100 loops");
}

TEST(CompiledCost, LoopsThatShareABranchUpwardsAreAllCounted) {
  expect_compiled(module_of(function("f", loops_that_share_a_branch(5))));
  expect_refused(module_of(function("f", loops_that_share_a_branch(100))), "100 loops");
}

TEST(CompiledCost, ALongLoop) {
  expect_compiled(module_of(function("f", long_loop(150))));
  expect_refused(module_of(function("f", long_loop(600))), " instructions that are compiled, 1 loops");
}

TEST(CompiledCost, ALoopWithManyExits) {
  expect_compiled(module_of(function("f", loop_of_different_indices(100))));
  expect_refused(module_of(function("f", loop_of_different_indices(160))), "a loop has 3");
}

TEST(CompiledCost, ManyRegistersThatLiveAtManyExits) {
  expect_compiled(module_of(function("f", loop_of_counters(40))));
  expect_refused(module_of(function("f", loop_of_counters(100))), "at most 16384 are compiled");
}

TEST(CompiledCost, ManyInstructionsWithoutALoop) {
  expect_compiled(module_of(function("f", no_loop(1200))));
  expect_refused(module_of(function("f", no_loop(4000))), " instructions that are compiled, 0 loops");
}

// Limits on the size alone, which are checked before the estimate is made.
TEST(CompiledCost, LargeFunctions) {
  expect_refused(module_of(function("f", no_loop(9000))), "words; at most 8192 are compiled");
  expect_refused(module_of(function("f", no_loop(1000) + "  %i2000 = vm.add.i32 %i20, %i14\n")),
                 "too many registers for its length");
  std::string allocations = "^bb1:\n";
  for (int i = 0; i < 300; ++i)
    allocations += "  %r2 = vm.buffer.alloc %i12:13, %i14\n  %i20 = vm.add.i32 %i20, %i14\n";
  expect_refused(module_of(function("f", allocations)), "places; at most 256 are compiled");
}

std::string calls_to_itself(int calls, int registers) {
  std::string body;
  for (int i = 0; i < registers; ++i) body += fmt::format("  %i{} = vm.const.i32 {}\n", i, i);
  for (int i = 0; i < calls; ++i) body += fmt::format("  %i{} = vm.call @m:0()\n", i);
  for (int i = 1; i < registers; ++i) body += fmt::format("  %i0 = vm.add.i32 %i0, %i{}\n", i);
  return "vm.module @m\nvm.export @f\nvm.func @f() -> (i32) {\n" + body + "  vm.return %i0\n}\n";
}

TEST(CompiledCost, CallsToItselfWithManyRegisters) {
  expect_compiled(calls_to_itself(2, 20));
  expect_refused(calls_to_itself(40, 500), "40 calls to itself");
}

// The first number in the reason why a function is refused that follows `before`.
uint64_t number_in(const std::string& text, std::string_view before) {
  const Result<CompiledFunction> compiled = compile(text);
  EXPECT_FALSE(compiled);
  const std::string reason = compiled ? "" : compiled.error().text();
  const size_t at = reason.find(before);
  EXPECT_NE(at, std::string::npos) << reason;
  return at == std::string::npos ? 0 : std::strtoull(reason.c_str() + at + before.size(), nullptr, 10);
}
constexpr std::string_view kInstructionsAre = "too long to compile: it has ";
constexpr std::string_view kCostIs = "an estimated cost of ";
constexpr uint64_t kMost = uint64_t{1} << 23;

// Each instruction with each other one, 2; in functions with loops, 16, and 8 for each pair of loops in each
// instruction; 2048 for each register that a call to itself stores.
TEST(CompiledCost, TheEstimateIsThatOfTheDocument) {
  for (const int additions : {4000, 4001}) {
    const std::string text = module_of(function("f", no_loop(additions)));
    const uint64_t count = number_in(text, kInstructionsAre);
    EXPECT_EQ(count - number_in(module_of(function("f", no_loop(3999))), kInstructionsAre),
              additions - 3999u);
    EXPECT_EQ(number_in(text, kCostIs), 2 * count * count);
  }
  for (const auto& [body, loops] : {std::pair(loops_in_a_row(100), 100), std::pair(loops_in_a_row(101), 101),
                                    std::pair(long_loop(600), 1)}) {
    const std::string text = module_of(function("f", body));
    const uint64_t count = number_in(text, kInstructionsAre);
    EXPECT_EQ(number_in(text, " instructions that are compiled, "), static_cast<uint64_t>(loops));
    EXPECT_EQ(number_in(text, kCostIs),
              16 * count * count + 8 * static_cast<uint64_t>(loops * loops) * count);
  }
  for (const int calls : {40, 41}) {
    const std::string text = calls_to_itself(calls, 512);
    const uint64_t count = number_in(text, kInstructionsAre);
    EXPECT_EQ(number_in(text, kCostIs), 2 * count * count + 2048 * 512 * static_cast<uint64_t>(calls))
        << count;
  }
}

// Copies that branches make, of 32 and of 64 bits, are instructions as well.
TEST(CompiledCost, CopiesOfBranchesCount) {
  const auto count = [](std::string_view copies) {
    const std::string body =
        no_loop(4000) + fmt::format("  vm.br ^bb2({})\n^bb2:\n  %i40 = vm.add.i32 %i41, %i14\n", copies);
    return number_in(module_of(function("f", replaced(body, "()", ""))), kInstructionsAre);
  };
  const uint64_t none = count("");
  EXPECT_EQ(count("%i20 -> %i41"), none + 1);
  EXPECT_EQ(count("%i20 -> %i41, %i22 -> %i43"), none + 2);
  EXPECT_EQ(count("%i20 -> %i42, %i21 -> %i43"), none + 1) << "a pair is one copy";
}

TEST(CompiledCost, LimitsAreExact) {
  const auto additions = [](int count) { return module_of(function("f", no_loop(count))); };
  {
    // 2 * 2048 * 2048 is the limit.
    const int others = static_cast<int>(number_in(additions(4000), kInstructionsAre)) - 4000;
    expect_compiled(additions(2048 - others));
    expect_refused(additions(2049 - others), fmt::format("at most {} is compiled", kMost));
  }
  {
    constexpr std::string_view kWordsAre = "it has ";
    const int words = static_cast<int>(number_in(additions(9000), kWordsAre));
    const int each = static_cast<int>(number_in(additions(9001), kWordsAre)) - words;
    ASSERT_EQ((words - 8192) % each, 0);
    const int most = 9000 - (words - 8192) / each;
    expect_refused(additions(most), kCostIs);  // not for its words
    expect_refused(additions(most + 1), fmt::format("{} words; at most 8192 are compiled", 8192 + each));
  }
  {
    const auto allocations = [](int count) {
      std::string text = "^bb1:\n";
      for (int i = 0; i < count; ++i)
        text += "  %r2 = vm.buffer.alloc %i12:13, %i14\n  %i20 = vm.add.i32 %i20, %i14\n";
      return module_of(function("f", text));
    };
    const int others = static_cast<int>(number_in(allocations(300), "leave it in ")) - 300;
    expect_compiled(allocations(256 - others));
    expect_refused(allocations(257 - others), "in 257 places; at most 256 are compiled");
  }
}

// Words times registers.
TEST(CompiledCost, TheLimitOfRegistersDependsOnTheLength) {
  const auto text = [](int additions, int registers) {
    return module_of(
        function("f", no_loop(additions) + fmt::format("  %i{} = vm.add.i32 %i20, %i14\n", registers - 1)));
  };
  int words = static_cast<int>(number_in(text(9000, 100), "it has "));
  const int each = static_cast<int>(number_in(text(9001, 100), "it has ")) - words;
  ASSERT_EQ((words - 1024) % each, 0);
  const int additions = 9000 - (words - 1024) / each;  // 1024 words
  expect_compiled(text(additions, 1024));
  expect_refused(text(additions, 1025), "too many registers for its length");
  expect_refused(text(additions + 1, 1024), "too many registers for its length");
}

// What is compiled of functions with much of one thing computes what it should; without limits LLVM would
// take minutes for some of them.
TEST(CompiledCost, MuchOfOneThing) {
  int compiled = 0;
  int refused = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Choices choices(seed);
    const std::string text = generate_much(choices);
    const Ref<LoadedModule> module = load(text, {.verify_eagerly = true, .compiler = &compiler()});
    const Comparison comparison = compare_exports(module, choices, {.rounds = 2});
    ASSERT_EQ(comparison.difference, "") << "seed " << seed;
    ++((*module->code(0))->compiled ? compiled : refused);
  }
  EXPECT_GT(compiled, 5);
  EXPECT_GT(refused, 2);
}

TEST(CompiledCost, ARefusedFunctionIsInterpreted) {
  const TestProgram program(module_of(function("f", loops_in_a_row(400))), {.compiler = &compiler()});
  EXPECT_EQ(ASSERT_VALUE(program.call({})).as_i32(), 0);
  EXPECT_FALSE(program.is_compiled());
}

TEST(CompiledCost, TheTimeToCompileCountsInTheTimeLimit) {
  const TestProgram program(module_of(function("f", long_loop(300))), {.compiler = &compiler()},
                            {.time = 1ms});
  EXPECT_FAILS(DEADLINE_EXCEEDED, "", program.call({}));
  EXPECT_TRUE(program.is_compiled()) << "for the next call";
}

// One thread compiles what takes long; another one is through with a small function before that.
TEST(CompiledCost, AThreadDoesNotWaitForTheFunctionOfAnother) {
  expect_compiled(module_of(function("f", no_loop(3))));  // LLVM is loaded
  const std::string large = module_of(function("f", long_loop(350)));
  std::atomic<bool> has_begun = false;
  std::atomic<bool> is_through = false;
  std::thread other([&] {
    const Ref<LoadedModule> module = load(large, {.verify_eagerly = true});
    const auto code = *decode_function(*module, 0, {.fuse = false, .entries = Entries::calls});
    has_begun = true;
    EXPECT_TRUE(compiler().compile(*code, {}));
    is_through = true;
  });
  while (!has_begun) std::this_thread::yield();
  expect_compiled(module_of(function("f", no_loop(4))));
  EXPECT_FALSE(is_through);
  other.join();
}

TEST(CompiledCost, ModulesTakeTurnsInTheQueue) {
  constexpr uint32_t kFunctions = 30;
  const auto queue = std::make_shared<CompileQueue>();
  std::string functions;
  for (uint32_t i = 0; i < kFunctions; ++i) functions += function(fmt::format("f{}", i), loops_in_a_row(12));
  const Ref<LoadedModule> many = load(module_of(functions), {.verify_eagerly = true, .queue = queue});
  const Ref<LoadedModule> one =
      load(module_of(function("f", loops_in_a_row(1))), {.verify_eagerly = true, .queue = queue});
  for (uint32_t i = 0; i < kFunctions; ++i) many->store().request(i, false);
  one->store().request(0, false);
  while (!one->store().heat(0)->for_calls) std::this_thread::yield();
  EXPECT_GT(queue->pending(), 0u);
  EXPECT_FALSE(many->store().heat(kFunctions - 1)->for_calls);
}

}  // namespace
}  // namespace halyard::vm::test
