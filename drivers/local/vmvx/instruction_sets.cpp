// The sets of instructions that there are kernels for, and which of them this processor has.
#include "simd_targets.h"
// After it.
#include <hwy/highway.h>

#include <algorithm>

#include "kernels.h"
#include "simd.h"

namespace halyard::local::vmvx {

namespace {

struct InstructionSet {
  int64_t target;  // Highway's
  std::string_view name;
};
// Best first.
constexpr InstructionSet kInstructionSets[] = {
#if HWY_ARCH_X86
    {HWY_AVX3_DL, "avx512-vnni"},
    {HWY_AVX3, "avx512"},
    {HWY_AVX2, "avx2"},
    {HWY_SSE4, "sse4"},
#elif HWY_ARCH_ARM
    {HWY_NEON, "neon"},
#endif
};

// Best first, the plain loops last.
const std::vector<Kernels>& tables() {
  static const std::vector<Kernels> tables = [] {
    std::vector<Kernels> made;
    const int64_t usable = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
    for (const auto& [target, name] : kInstructionSets) {
      if ((usable & target) == 0) continue;
      Kernels& kernels = made.emplace_back(scalar_kernels());
      kernels.instructions = name;
      add_mmt4d_simd(target, kernels);
    }
    made.push_back(scalar_kernels());
    return made;
  }();
  return tables;
}

}  // namespace

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const Kernels& kernels : tables()) names.push_back(kernels.instructions);
  return names;
}

const Kernels* find_kernels(std::string_view instructions) {
  if (instructions == "best") return &tables().front();
  if (instructions == "baseline") return &tables()[tables().size() - 2];
  const auto found = std::ranges::find(tables(), instructions, &Kernels::instructions);
  return found == tables().end() ? nullptr : &*found;
}

}  // namespace halyard::local::vmvx
