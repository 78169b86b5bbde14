// Analyses any module: it ends, and each peak is the sum of its parts.
#include "analysis/analysis.h"
#include "fuzzing.h"
#include "module_mutator.h"

using namespace halyard;

namespace {

void check(const analysis::Function& function, analysis::Symbols& symbols) {
  for (const analysis::Peak& peak : function.peaks) {
    const analysis::Level& level = peak.level;
    const analysis::Expression sum =
        symbols.add(symbols.add(level.arguments, level.results), symbols.add(level.transients, level.state));
    if (sum.constant() && level.total.constant() && !(sum == level.total))
      fuzz::finding("a peak differs from the sum of its parts");
    for (const uint32_t alive : peak.alive)
      if (alive >= function.allocations.size()) fuzz::finding("an allocation at the peak does not exist");
  }
  for (uint32_t i = 0; i < function.steps.size(); ++i)
    for (const uint32_t before : function.steps[i].after)
      if (before >= i) fuzz::finding("a step comes after a later one");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<vm::ModuleView> view = vm::ModuleView::open(Bytes::borrow({data, size}, {}));
  if (!view) return 0;
  analysis::Options options;
  options.max_steps = 20'000;
  Result<analysis::Analysis> made = analysis::analyze(*view, options);
  if (!made) return 0;
  if (made->initializer) check(*made->initializer, made->symbols);
  for (const analysis::Function& function : made->functions) check(function, made->symbols);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_module(data, size, max_size, seed);
}
