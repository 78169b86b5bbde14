// Functions that are interpreted first: they go over to machine code at the heads of loops and in calls, and
// nobody can tell but by the time.

#include <atomic>
#include <memory>

#include "loop_generator.h"
#include "program.h"
#include "vm/compile/compile_queue.h"
#include "vm/compile/heat.h"
#include "vm/object/buffer.h"

namespace halyard::vm::test {
namespace {

using std::chrono::steady_clock;

TEST(CompiledTiers, GeneratedLoops) {
  uint32_t moved = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Choices choices(seed);
    const std::string text = generate_loops(choices);
    const auto queue =
        std::make_shared<CompileQueue>(Sampling{.branches = 1 + static_cast<uint32_t>(seed % 7)});
    const Ref<LoadedModule> module = load(text, {.queue = queue});
    compile_loops(*module);
    const Comparison comparison = compare_exports(module, choices, {.rounds = 30});
    ASSERT_EQ(comparison.difference, "") << "seed " << seed << '\n' << text;
    moved += module->store().heat(0)->moved;
  }
  EXPECT_GT(moved, 300u);
}

TEST(CompiledTiers, GeneratedPrograms) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Choices choices(seed);
    const Program program = generate_program(choices);
    const Sampling sampling = {.branches = 1 + static_cast<uint32_t>(seed % 3)};
    const Comparison comparison = compare_machines(program, {.tiers = true, .sampling = sampling});
    ASSERT_EQ(comparison.difference, "") << "seed " << seed << '\n' << describe(program);
  }
}

// g(n) adds up 0 to n - 1, f(n, m) calls it m times.
constexpr std::string_view kCalls = R"(
vm.module @m
vm.export @f
vm.func @g(%i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb2, ^bb3
^bb2:
  %i4:5 = vm.add.i64 %i4:5, %i2:3
  %i2:3 = vm.add.i64 %i2:3, %i6:7
  vm.br ^bb1
^bb3:
  vm.return %i4:5
}
vm.func @f(%i0:1: i64, %i2:3: i64) -> (i64) {
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  %i8:9 = vm.const.i64.zero
  vm.br ^bb1
^bb1:
  %i12:13 = vm.call @g(%i0:1)
  %i8:9 = vm.add.i64 %i8:9, %i12:13
  %i4:5 = vm.add.i64 %i4:5, %i6:7
  %i14 = vm.cmp.lt.i64.s %i4:5, %i2:3
  vm.cond_br %i14, ^bb1, ^bb2
^bb2:
  vm.return %i8:9
}
)";

struct Machine : TestProgram {
  explicit Machine(std::string_view text, Sampling sampling = {})
      : Machine(text, std::make_shared<CompileQueue>(sampling)) {}
  Machine(std::string_view text, const std::shared_ptr<CompileQueue>& queue)
      : TestProgram(text, {.queue = queue}), queue(queue) {}

  int64_t call(int64_t a, int64_t b) {
    const Result<Variant> result =
        TestProgram::call(std::array<Variant, 2>{Variant::i64(a), Variant::i64(b)});
    EXPECT_OK(result);
    return result ? result->as_i64() : 0;
  }

  std::shared_ptr<CompileQueue> queue;
};

TEST(CompiledTiers, WhatIsHotIsCompiledMeanwhile) {
  Machine machine(kCalls, {.age = {}});
  EXPECT_EQ(machine.call(3, 2), 6);
  EXPECT_FALSE(machine.is_compiled());
  EXPECT_EQ(machine.module->store().heat(0)->for_calls.load(), nullptr);
  EXPECT_EQ(machine.call(1000, 6000), int64_t{6000} * 499500);
  machine.queue->wait_until_idle();
  ASSERT_NE(machine.module->store().heat(0)->for_calls.load(), nullptr);
  EXPECT_TRUE(machine.is_compiled());
  // What only calls is not: going there and back would cost more.
  EXPECT_FALSE(machine.is_compiled(1));
  EXPECT_EQ(machine.call(1000, 6000), int64_t{6000} * 499500);
  // Calls have been bound again to what was compiled.
  const FunctionCode& caller = **machine.module->code(1);
  ASSERT_EQ(caller.calls.size(), 1u);
  EXPECT_TRUE(caller.calls[0].binding->callee->compiled);
}

// Two samples of ten branches: some 20 turns of the loop in g.
TEST(CompiledTiers, TheQueueSaysWhatIsHot) {
  Machine machine(kCalls, {.branches = 10, .hot = 2, .age = {}});
  EXPECT_EQ(machine.call(3, 1), 3);
  machine.queue->wait_until_idle();
  EXPECT_FALSE(machine.is_compiled());
  EXPECT_EQ(machine.call(30, 1), 435);
  machine.queue->wait_until_idle();
  EXPECT_TRUE(machine.is_compiled());
}

TEST(CompiledTiers, WhatHasNotRunForLongIsNotHot) {
  Machine young(kCalls, {.branches = 10, .hot = 2, .age = std::chrono::hours(24)});
  EXPECT_EQ(young.call(1000, 1000), int64_t{1000} * 499500);
  EXPECT_EQ(young.queue->pending(), 0u);
  young.queue->wait_until_idle();
  EXPECT_FALSE(young.is_compiled());
  Machine old(kCalls, {.branches = 10, .hot = 2, .age = std::chrono::milliseconds(1)});
  const auto end = steady_clock::now() + std::chrono::minutes(5);
  while (!old.is_compiled() && steady_clock::now() < end) old.call(1000, 1000);
  EXPECT_TRUE(old.is_compiled());
}

// One call that goes on until it is stopped.
TEST(CompiledTiers, ALongLoopMovesOverAtItsHead) {
  Machine machine(kCalls);
  const Heat& heat = *machine.module->store().heat(0);
  Invocation invocation(machine.context);
  std::atomic<bool> moved = false;
  std::jthread stopper([&](const std::stop_token& done) {
    const auto end = steady_clock::now() + std::chrono::minutes(5);
    while (heat.moved == 0 && steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    moved = heat.moved != 0;
    while (!done.stop_requested()) {
      invocation.interrupt(Code::CANCELLED);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  const std::array<Variant, 2> arguments = {Variant::i64(INT64_MAX), Variant::i64(1)};
  std::array<Variant, 1> results;
  EXPECT_FAILS(CANCELLED, "", invocation.call(machine.function, arguments, results));
  stopper.request_stop();
  stopper.join();
  EXPECT_TRUE(moved);
}

// The queue goes first, or the module does.
TEST(CompiledTiers, NothingIsLeftBehind) {
  for (const bool queue_first : {false, true}) {
    Machine machine(kCalls, {.age = {}});
    EXPECT_EQ(machine.call(1000, 6000), int64_t{6000} * 499500);
    if (queue_first) machine.queue.reset();
    EXPECT_EQ(machine.call(1000, 6000), int64_t{6000} * 499500);
    if (!queue_first) {
      machine.context = {};
      machine.function = {};
      machine.module = {};
      machine.queue->wait_until_idle();
    }
  }
}

}  // namespace
}  // namespace halyard::vm::test
