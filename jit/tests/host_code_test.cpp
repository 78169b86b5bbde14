// Functions that call themselves, and lists of values: compiled and interpreted code agree in results, in
// failures with their traces, in limits, and when they are stopped.

#include <array>
#include <utility>

#include "program.h"

namespace halyard::vm::test {
namespace {

// f(n, m): counts down n times, and divides by m at the bottom. The second result is a sum of floats.
constexpr std::string_view kRecursion = R"(
vm.module @m
vm.type f32
vm.export @f
vm.func @f(%i0: i32, %i1: i32) -> (i32) {
  .requires ext_f32
  %i6 = vm.const.f32 1.5
  %i2, %i4:5, %i3 = vm.call @m:1(%i0, %i1, %i6)
  %i7 = vm.trunc.i64.i32 %i4:5
  %i2 = vm.add.i32 %i2, %i7
  %i3 = vm.bitcast.f32.i32 %i3
  %i2 = vm.xor.i32 %i2, %i3
  vm.return %i2
}
vm.func @g(%i0: i32, %i1: i32, %i2: f32) -> (i32, i64, f32) {
  .requires ext_f32
  %i10 = vm.const.i32 1
  %i3 = vm.cmp.lt.i32.s %i0, %i10
  %i6:7 = vm.ext.i32.i64.s %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb1:
  %i4 = vm.div.i32.s %i10, %i1
  vm.return %i4, %i6:7, %i2
^bb2:
  %i4 = vm.sub.i32 %i0, %i10
  %i11 = vm.add.f32 %i2, %i2
  %i4, %i8:9, %i12 = vm.call @m:1(%i4, %i1, %i11)
  %i4 = vm.add.i32 %i4, %i0
  %i8:9 = vm.add.i64 %i8:9, %i6:7
  %i12 = vm.add.f32 %i12, %i2
  vm.return %i4, %i8:9, %i12
}
)";

// f(n, m): the number of calls of a tree of depth n; m is added at each leaf.
constexpr std::string_view kTree = R"(
vm.module @m
vm.export @f
vm.func @f(%i0: i32, %i1: i32) -> (i32) {
  %i2 = vm.const.i32 1
  %i3 = vm.cmp.lt.i32.s %i0, %i2
  vm.cond_br %i3, ^bb1, ^bb2
^bb1:
  vm.return %i1
^bb2:
  %i4 = vm.sub.i32 %i0, %i2
  %i5 = vm.call @m:0(%i4, %i1)
  %i6 = vm.call @m:0(%i4, %i1)
  %i5 = vm.add.i32 %i5, %i6
  vm.return %i5
}
)";

// f(n, m): fills a list of n numbers and adds up m of them; g is that of lists of floats that hold integers.
std::string lists(std::string_view element, std::string_view type) {
  std::string text = R"(
vm.module @m
vm.type f32
vm.type i32
vm.type !vm.list<ELEMENT>
vm.export @f
vm.func @f(%i0: i32, %i1: i32) -> (i32) {
  .requires ext_f32
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32 1
  %i4 = vm.const.i32.zero
  %r0 = vm.list.alloc %i0 : !vm.list<ELEMENT>
  vm.list.resize %r0, %i0
  vm.br ^bb1
^bb1:
  %i5 = vm.mul.i32 %i2, %i2
  vm.list.set.TYPE %r0, %i2, %i5
  %i2 = vm.add.i32 %i2, %i3
  %i6 = vm.list.size %r0
  %i7 = vm.cmp.lt.i32.s %i2, %i6
  vm.cond_br %i7, ^bb1, ^bb2
^bb2:
  %i2 = vm.const.i32.zero
  vm.br ^bb3
^bb3:
  %i5 = vm.list.get.TYPE %r0, %i2
  %i4 = vm.add.i32 %i4, %i5
  %i2 = vm.add.i32 %i2, %i3
  %i7 = vm.cmp.lt.i32.s %i2, %i1
  vm.cond_br %i7, ^bb3, ^bb4
^bb4:
  vm.discard.refs %r0
  vm.return %i4
}
)";
  return replaced(replaced(std::move(text), "ELEMENT", element), "TYPE", type);
}

struct Machine : TestProgram {
  Machine(std::string_view text, bool is_compiled, Limits limits = {})
      : TestProgram(text, {.compiler = is_compiled ? *Compiler::find() : nullptr}, std::move(limits)) {}

  // The result, or the failure as a whole.
  std::string call(int32_t a, int32_t b) {
    const Result<Variant> result =
        TestProgram::call(std::array<Variant, 2>{Variant::i32(a), Variant::i32(b)});
    return result ? std::to_string(result->as_i32()) : result.error().text();
  }
};

// Deeper than the native stack that is taken at once, too.
TEST(CompiledCalls, Recursion) {
  Machine interpreted(kRecursion, false);
  Machine compiled(kRecursion, true);
  ASSERT_TRUE(calls_itself(**compiled.module->code(1)));
  for (const int32_t depth : {0, 1, 2, 3, 50, 100, 200, 1000, 12345})
    for (const int32_t divisor : {1, 3, 0, -1})
      EXPECT_EQ(compiled.call(depth, divisor), interpreted.call(depth, divisor)) << depth << ' ' << divisor;
}

TEST(CompiledCalls, TheStackIsFull) {
  const Limits limits = {.stack_bytes = 100'000};
  Machine interpreted(kRecursion, false, limits);
  Machine compiled(kRecursion, true, limits);
  size_t failed = 0;
  for (int32_t depth = 10; depth < 2000; depth = depth * 5 / 4) {
    const std::string expected = interpreted.call(depth, 1);
    failed += expected.starts_with("RESOURCE_EXHAUSTED");
    EXPECT_EQ(compiled.call(depth, 1), expected) << depth;
  }
  EXPECT_GT(failed, 0u);
}

TEST(CompiledCalls, Trees) {
  Machine interpreted(kTree, false);
  Machine compiled(kTree, true);
  for (int32_t depth = 0; depth < 14; ++depth) EXPECT_EQ(compiled.call(depth, 3), interpreted.call(depth, 3));
}

TEST(CompiledCalls, AreStopped) {
  expect_cancelled(Machine(kTree, true), std::array<Variant, 2>{Variant::i32(60), Variant::i32(1)});
}

TEST(CompiledLists, OfTheTypeAndOfOthers) {
  for (const auto& [element, type] : {std::pair{"i32", "i32"}, {"f32", "i32"}}) {
    const std::string text = lists(element, type);
    Machine interpreted(text, false);
    Machine compiled(text, true);
    for (const int32_t size : {0, 1, 2, 7, 8, 100, 5000})
      for (const int32_t used : {0, 1, size - 1, size, size + 1})
        EXPECT_EQ(compiled.call(size, used), interpreted.call(size, used))
            << element << ' ' << size << ' ' << used;
  }
}

}  // namespace
}  // namespace halyard::vm::test
