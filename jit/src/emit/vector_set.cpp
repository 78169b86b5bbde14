#include "emit/vector_set.h"

namespace halyard::jit {

VectorSet vector_set(const llvm::LLVMTargetMachine& machine) {
  const llvm::Triple& triple = machine.getTargetTriple();
  const auto has = [&](llvm::StringRef feature) {
    llvm::SmallVector<llvm::StringRef, 64> all;
    machine.getTargetFeatureString().split(all, ',');
    return llvm::is_contained(all, ("+" + feature).str());
  };
  if (triple.isX86()) {
    VectorSet set = {.fuses = has("fma"),
                     .has_pairs = true,
                     .flushes = true,
                     .is_x86 = true,
                     .sums = 8,
                     .panel_vectors = 1};
    if (has("avx512bw")) {
      set.has_vnni = has("avx512vnni");
      set.register_lanes = set.lanes = 16;
      set.sums = 16;
      set.panel_rows = 8;
      set.panel_vectors = 2;
    } else if (has("avx2")) {
      set.register_lanes = 8;
      set.panel_vectors = 3;
    }
    return set;
  }
  if (triple.isAArch64()) return {.fuses = true, .flushes = true, .is_arm = true};
  if (has("v")) return {.panel_vectors = 1};
  return {.sums = 2, .panel_rows = 2, .panel_vectors = 1};
}

}  // namespace halyard::jit
