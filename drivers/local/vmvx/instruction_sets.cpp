// The sets of instructions that there are kernels for, and which of them this processor has.
#include "simd_targets.h"
// After it.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <type_traits>

#include "kernels.h"
#include "simd.h"

namespace halyard::local::vmvx {

namespace {

// The compiler's support library also looks at what the operating system saves.
#if HWY_ARCH_X86
bool has_vnni() { return __builtin_cpu_supports("avx512vnni") != 0; }
bool has_bf16() { return has_vnni() && __builtin_cpu_supports("avx512bf16") != 0; }
#endif

struct InstructionSet {
  std::string_view name;
  int64_t target;       // Highway's
  bool (*supported)();  // what Highway does not ask for; may be null
  bool has_bf16 = false;
};
// Best first.
constexpr InstructionSet kInstructionSets[] = {
#if HWY_ARCH_X86
    {"avx512-bf16", HWY_AVX3_DL, has_bf16, true},
    {"avx512-vnni", HWY_AVX3_DL, has_vnni},
    {"avx512", HWY_AVX3, nullptr},
    {"avx2", HWY_AVX2, nullptr},
    {"sse4", HWY_SSE4, nullptr},
#elif HWY_ARCH_ARM
    {"neon", HWY_NEON, nullptr},
#endif
};

// Best first, the plain loops last. Without a destructor: threads may use it while the process ends.
struct Tables {
  std::array<Kernels, std::size(kInstructionSets) + 1> list;
  size_t count = 0;

  std::span<const Kernels> all() const { return std::span(list).first(count); }
};
static_assert(std::is_trivially_destructible_v<Tables>);

std::span<const Kernels> tables() {
  static const Tables tables = [] {
    Tables made;
    const int64_t usable = (hwy::SupportedTargets() | HWY_STATIC_TARGET) & HWY_TARGETS;
    for (const InstructionSet& set : kInstructionSets) {
      if ((usable & set.target) == 0 || (set.supported && !set.supported())) continue;
      Kernels& kernels = made.list[made.count++] = scalar_kernels();
      kernels.instructions = set.name;
      add_mmt4d_simd(set.target, set.has_bf16, kernels);
      add_elementwise_simd(set.target, kernels);
      add_copy_simd(set.target, kernels);
      add_tiles_simd(set.target, kernels);
    }
    made.list[made.count++] = scalar_kernels();
    return made;
  }();
  return tables.all();
}

}  // namespace

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const Kernels& kernels : tables()) names.push_back(kernels.instructions);
  return names;
}

const Kernels* find_kernels(std::string_view instructions) {
  if (instructions == "best") return &tables().front();
  if (instructions == "baseline") return &tables()[std::max<size_t>(tables().size(), 2) - 2];
  const std::span<const Kernels> known = tables();
  const auto found = std::ranges::find(known, instructions, &Kernels::instructions);
  return found == known.end() ? nullptr : &*found;
}

}  // namespace halyard::local::vmvx
