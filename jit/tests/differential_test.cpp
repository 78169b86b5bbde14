// Compiled code against the reference machine on generated programs: results, statuses, what objects hold
// afterwards and what is left alive. A failure names its seed: HALYARD_SEED=n runs that one alone,
// HALYARD_SEEDS=n so many.
#include "differential.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/bytes.h"
#include "loop_generator.h"
#include "status_testing.h"
#include "sums_generator.h"
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

// Compiles the programs of the generator, and compares calls of each with many arguments. Gives how often the
// calls ended with each code.
std::array<uint64_t, 32> compare_compiled(std::string (*generate)(Choices&), uint64_t seeds) {
  std::array<uint64_t, 32> codes = {};
  const uint64_t only = from_environment("HALYARD_SEED", UINT64_MAX);
  const uint64_t first = only == UINT64_MAX ? 0 : only;
  const Result<const Compiler*> compiler = Compiler::find();
  EXPECT_TRUE(compiler);
  for (uint64_t seed = first; seed < (only == UINT64_MAX ? seeds : only + 1); ++seed) {
    Choices choices(seed);
    const std::string text = generate(choices);
    Result<std::vector<uint8_t>> file = assemble(text, {});
    if (!file) {
      ADD_FAILURE() << file.error().text() << '\n' << text;
      break;
    }
    const Result<Ref<LoadedModule>> module =
        LoadedModule::load(Bytes::own(*std::move(file)), known_types(), {.compiler = *compiler});
    if (!module) {
      ADD_FAILURE() << module.error().text() << '\n' << text;
      break;
    }
    const Result<const FunctionCode*> code = (*module)->code(0);
    EXPECT_TRUE(code && (*code)->compiled) << text;
    const Comparison comparison = compare_exports(*module, choices, {.rounds = 30});
    EXPECT_EQ(comparison.difference, "") << "HALYARD_SEED=" << seed << '\n' << text;
    if (!comparison.difference.empty()) break;
    for (size_t i = 0; i < codes.size(); ++i) codes[i] += comparison.codes[i];
  }
  return codes;
}

// Nests of loops over buffers that overlap, with many arguments each. Both ways through are there.
TEST(Compiled, GeneratedLoops) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 100);
  const auto codes = compare_compiled(generate_loops, seeds);
  if (std::getenv("HALYARD_SEED")) return;
  EXPECT_GT(codes[static_cast<size_t>(Code::OK)], seeds);
  EXPECT_GT(codes[static_cast<size_t>(Code::OUT_OF_RANGE)], seeds);
}

// Sums with the nests before and after them.
TEST(Compiled, GeneratedSums) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 100);
  const auto codes = compare_compiled(generate_sums, seeds);
  if (std::getenv("HALYARD_SEED")) return;
  EXPECT_GT(codes[static_cast<size_t>(Code::OK)], seeds);
}

}  // namespace
}  // namespace halyard::vm::test
