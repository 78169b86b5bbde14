// Globals at offsets that are known when the function runs, compiled and interpreted: up to the last byte of
// all globals and behind it.
#include <fmt/format.h>

#include <string>

#include "program.h"

namespace halyard::vm::test {
namespace {

// Stores the number, loads it again, and gives it with what stands at offset 0; 20 bytes of globals.
std::string indirect_globals(std::string_view type, std::string_view zero, std::string_view one) {
  return fmt::format(R"(
vm.module @m
vm.global.i32 mutable @a
vm.global.i32 mutable @b
vm.global.i32 mutable @c
vm.global.i32 mutable @d
vm.global.i32 mutable @e
vm.export @f
vm.func @f(%i0: i32, {1}: {0}) -> ({0}, {0}) {{
  {3}
  vm.global.store.indirect.{0} %i0, {1}
  {1} = vm.global.load.indirect.{0} %i0
  %i6 = vm.const.i32.zero
  {2} = vm.global.load.indirect.{0} %i6
  vm.return {1}, {2}
}}
)",
                     type, zero, one, type[0] == 'f' ? fmt::format(".requires ext_{}", type) : "");
}

// The outcome of a call: both results, or the failure.
std::string outcome_at(const TestProgram& program, int32_t offset, const Variant& value) {
  const std::array<Variant, 2> arguments = {Variant::i32(offset), value};
  std::array<Variant, 2> results;
  Invocation invocation(program.context);
  const Result<> done = invocation.call(program.function, arguments, results);
  if (!done) return done.error().text();
  return fmt::format("{:x} {:x}", results[0].bits(), results[1].bits());
}

class CompiledBoundsOfGlobals : public testing::TestWithParam<std::pair<std::string, Variant>> {};

TEST_P(CompiledBoundsOfGlobals, AreThoseOfTheInterpreter) {
  const auto compiler = ASSERT_VALUE(Compiler::find());
  const auto& [type, value] = GetParam();
  const bool is_wide = type == "i64" || type == "f64";
  const std::string text = indirect_globals(type, is_wide ? "%i2:3" : "%i1", is_wide ? "%i4:5" : "%i4");
  size_t failed = 0;
  const int32_t offsets[] = {0,  1,  4,  8,  11, 12, 13, 15,        16,       17,
                             19, 20, 21, 24, -1, -4, -8, INT32_MAX, INT32_MIN};
  for (const int32_t offset : offsets) {
    const TestProgram interpreted(text, {.compiler = nullptr});
    const TestProgram compiled(text, {.compiler = compiler});
    ASSERT_TRUE(compiled.is_compiled());
    const std::string expected = outcome_at(interpreted, offset, value);
    failed += expected.find("OUT_OF_RANGE") != std::string::npos;
    EXPECT_EQ(outcome_at(compiled, offset, value), expected) << type << " at " << offset;
  }
  EXPECT_GT(failed, 5u);
  EXPECT_LT(failed, std::size(offsets) - 5);
}

INSTANTIATE_TEST_SUITE_P(, CompiledBoundsOfGlobals,
                         testing::Values(std::pair{"i32", Variant::i32(0x12345678)},
                                         std::pair{"i64", Variant::i64(0x123456789ABCDEF0)},
                                         std::pair{"f32", Variant::f32(1.5f)},
                                         std::pair{"f64", Variant::f64(-0.1)}));

}  // namespace
}  // namespace halyard::vm::test
