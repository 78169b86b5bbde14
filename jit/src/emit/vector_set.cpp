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
                     .vectors = 1,
                     .rows_of_16 = 2,
                     .vectors_of_few = 2};
    if (has("avx512bw")) {
      set.has_vnni = has("avx512vnni");
      set.register_lanes = set.lanes = 16;
      set.rows = 8;
      set.vectors = 2;
      set.few_rows = 4;
      set.vectors_of_few = 4;
    } else if (has("avx2")) {
      set.register_lanes = 8;
      set.vectors = 3;
      set.rows_of_16 = 4;
      set.vectors_of_few = 4;
    }
    return set;
  }
  if (triple.isAArch64()) return {.fuses = true, .flushes = true, .is_arm = true};
  if (has("v")) return {.vectors = 1};
  return {.rows = 2, .vectors = 1, .rows_of_16 = 1, .few_rows = 1, .vectors_of_few = 1};
}

}  // namespace halyard::jit
