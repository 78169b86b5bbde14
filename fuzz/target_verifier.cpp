// Mutated function bodies. If the verifier accepts them, the machine and the reference machine must agree; a
// missing verifier rule appears as an invalid access in one of them. The constants are overwritten meanwhile,
// because a kernel may write to them, and this must not change verified code.
#include "differential.h"
#include "fuzzing.h"
#include "module_mutator.h"
#include "private_bytes.h"
#include "vm/compile/loaded_module.h"

using namespace halyard;
using namespace halyard::vm;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Ref<LoadedModule>> loaded =
      LoadedModule::load(fuzz::private_bytes({data, size}), test::known_types());
  if (!loaded) return 0;
  const Ref<LoadedModule>& module = *loaded;
  bool all = true;
  for (uint32_t i = 0; i < module->functions().size(); ++i) all &= module->code(i).has_value();
  const Result<Ref<LoadedModule>> eager =
      LoadedModule::load(Bytes::borrow({data, size}, {}), test::known_types(), {.verify_eagerly = true});
  if (eager.has_value() != all)
    fuzz::finding("a module loads eagerly but not lazily, or the other way round");
  if (!all) return 0;
  if (!test::overwrite_constants(*module)) fuzz::finding("functions change when constants are written");
  test::Choices choices(size * 31 + data[size / 2]);
  const test::Comparison comparison = compare_exports(module, choices);
  if (!comparison.difference.empty()) fuzz::finding(comparison.difference);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_module(data, size, max_size, seed);
}
