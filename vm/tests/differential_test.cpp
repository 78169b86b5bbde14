// Compares the machine with the reference machine on generated programs. A failure prints its seed:
// HALYARD_SEED=n runs only that one, HALYARD_SEEDS=n runs that many.
#include "differential.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/status.h"

namespace halyard::vm::test {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

TEST(Differential, GeneratedPrograms) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 10000);
  const uint64_t only = from_environment("HALYARD_SEED", UINT64_MAX);
  const uint64_t first = only == UINT64_MAX ? 0 : only;
  std::array<uint64_t, kOpCount> executed = {};
  std::array<uint64_t, 32> codes = {};
  uint64_t not_compared = 0;
  for (uint64_t seed = first; seed < (only == UINT64_MAX ? seeds : only + 1); ++seed) {
    Choices choices(seed);
    const Program program = generate_program(choices);
    const Comparison comparison = compare_machines(program);
    ASSERT_EQ(comparison.difference, "") << "HALYARD_SEED=" << seed << '\n' << describe(program);
    for (size_t op = 0; op < kOpCount; ++op) executed[op] += comparison.executed[op];
    for (size_t code = 0; code < codes.size(); ++code) codes[code] += comparison.codes[code];
    not_compared += !comparison.not_compared.empty();
  }
  if (only != UINT64_MAX) return;
  std::string summary;
  for (size_t code = 0; code <= 18; ++code)
    if (codes[code])
      summary += std::string(name(static_cast<Code>(code))) + " " + std::to_string(codes[code]) + ", ";
  std::cout << summary << "not compared " << not_compared << '\n';
  for (size_t op = 0; op < kOpCount; ++op) EXPECT_GT(executed[op], 0u) << kOps[op].mnemonic();
  // Most programs must run to their end and be comparable.
  EXPECT_GT(codes[0] * 2, seeds);
  EXPECT_LT(not_compared * 4, seeds);
}

// The same without fused instructions, for every fifth program.
TEST(Differential, GeneratedProgramsWithoutFusing) {
  const uint64_t seeds = from_environment("HALYARD_SEEDS", 10000);
  const uint64_t only = from_environment("HALYARD_SEED", UINT64_MAX);
  const uint64_t first = only == UINT64_MAX ? 0 : only;
  for (uint64_t seed = first; seed < (only == UINT64_MAX ? seeds : only + 1); seed += 5) {
    Choices choices(seed);
    const Program program = generate_program(choices);
    ASSERT_EQ(compare_machines(program, {.fuse = false}).difference, "") << "HALYARD_SEED=" << seed << '\n'
                                                                         << describe(program);
  }
}

}  // namespace
}  // namespace halyard::vm::test
