// Programs that are generated from the input: both machines must behave the same.
#include "differential.h"
#include "fuzzing.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace halyard;
  vm::test::Choices choices(std::span<const uint8_t>(data, size));
  const vm::test::Program program = generate_program(choices);
  const vm::test::Comparison comparison = compare_machines(program);
  if (!comparison.difference.empty()) fuzz::finding(comparison.difference + describe(program));
  return 0;
}
