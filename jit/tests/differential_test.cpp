// Compiled code against the reference machine on generated programs: results, statuses, what objects hold
// afterwards and what is left alive. A failure names its seed: HALYARD_SEED=n runs that one alone,
// HALYARD_SEEDS=n so many.
#include "differential.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/bytes.h"
#include "loop_generator.h"
#include "status_testing.h"
#include "vm/compile/compiler.h"
#include "vm/compile/loaded_module.h"
#include "vm/decode/code.h"
#include "vm/text/assembler.h"

namespace halyard::vm::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

TEST(Compiled, GeneratedPrograms) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 300);
  const uint64_t only = from_environment("HALYARD_SEED", UINT64_MAX);
  const uint64_t first = only == UINT64_MAX ? 0 : only;
  uint64_t not_compared = 0;
  std::array<uint64_t, 32> codes = {};
  for (uint64_t seed = first; seed < (only == UINT64_MAX ? seeds : only + 1); ++seed) {
    Choices choices(seed);
    const Program program = generate_program(choices);
    const Comparison comparison = compare_machines(program);
    ASSERT_EQ(comparison.difference, "") << "HALYARD_SEED=" << seed << '\n' << describe(program);
    for (size_t code = 0; code < codes.size(); ++code) codes[code] += comparison.codes[code];
    not_compared += !comparison.not_compared.empty();
  }
  if (only != UINT64_MAX) return;
  EXPECT_GT(codes[0] * 2, seeds);
  EXPECT_LT(not_compared * 4, seeds);
}

// Nests of loops over buffers that overlap, with many arguments each.
TEST(Compiled, GeneratedLoops) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 100);
  const uint64_t only = from_environment("HALYARD_SEED", UINT64_MAX);
  const uint64_t first = only == UINT64_MAX ? 0 : only;
  const auto compiler = ASSERT_VALUE(Compiler::find());
  std::array<uint64_t, 32> codes = {};
  for (uint64_t seed = first; seed < (only == UINT64_MAX ? seeds : only + 1); ++seed) {
    Choices choices(seed);
    const std::string text = generate_loops(choices);
    Result<std::vector<uint8_t>> file = assemble(text, {});
    ASSERT_TRUE(file) << file.error().text() << '\n' << text;
    const Result<Ref<LoadedModule>> module =
        LoadedModule::load(Bytes::own(*std::move(file)), known_types(), {.compiler = compiler});
    ASSERT_TRUE(module) << module.error().text() << '\n' << text;
    const Result<const FunctionCode*> code = (*module)->code(0);
    ASSERT_TRUE(code) << code.error().text() << '\n' << text;
    EXPECT_TRUE((*code)->compiled) << text;
    const Comparison comparison = compare_exports(*module, choices, 30);
    ASSERT_EQ(comparison.difference, "") << "HALYARD_SEED=" << seed << '\n' << text;
    for (size_t i = 0; i < codes.size(); ++i) codes[i] += comparison.codes[i];
  }
  if (only != UINT64_MAX) return;
  // Both ways through are there.
  EXPECT_GT(codes[static_cast<size_t>(Code::OK)], seeds);
  EXPECT_GT(codes[static_cast<size_t>(Code::OUT_OF_RANGE)], seeds);
}

}  // namespace
}  // namespace halyard::vm::test
