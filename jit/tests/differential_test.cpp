// Compiled code against the reference machine on generated programs: results, statuses, what objects hold
// afterwards and what is left alive. A failure names its seed: HALYARD_SEED=n runs that one alone,
// HALYARD_SEEDS=n so many.
#include "differential.h"

#include <gtest/gtest.h>

#include <cstdlib>

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

}  // namespace
}  // namespace halyard::vm::test
