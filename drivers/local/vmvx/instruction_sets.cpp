// The instruction sets that have kernels, and the test whether this processor supports them.
#include "simd_targets.h"
// Must come after simd_targets.h.
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <type_traits>

#include "halyard/x86_features.hpp"
#include "kernels.h"
#include "simd.h"

namespace halyard::local::vmvx {

namespace {

// The instructions that Highway enables for each target. Highway's own library is not used, because it takes
// 3 ms to load, in which it measures the clock's resolution.
#if HWY_ARCH_X86
bool has_sse4() { return x86::ssse3() && x86::sse4_1() && x86::sse4_2() && x86::pclmul() && x86::aes(); }
bool has_avx2() {
  return has_sse4() && x86::avx() && x86::avx2() && x86::bmi() && x86::bmi2() && x86::fma() && x86::f16c();
}
bool has_avx512() {
  return has_avx2() && x86::avx512f() && x86::avx512vl() && x86::avx512dq() && x86::avx512bw();
}
bool has_vnni() {
  return has_avx512() && x86::avx512vnni() && x86::vpclmulqdq() && x86::vaes() && x86::avx512vbmi() &&
         x86::avx512vbmi2() && x86::avx512bitalg() && x86::avx512vpopcntdq();
}
bool has_bf16() { return has_vnni() && x86::avx512bf16(); }
#endif

struct InstructionSet {
  std::string_view name;
  int64_t target;       // Highway's number
  bool (*supported)();  // null: all processors for which this file is compiled
  bool has_bf16 = false;
};
// Best first.
constexpr InstructionSet kInstructionSets[] = {
#if HWY_ARCH_X86
    {"avx512-bf16", HWY_AVX3_DL, has_bf16, true},
    {"avx512-vnni", HWY_AVX3_DL, has_vnni},
    {"avx512", HWY_AVX3, has_avx512},
    {"avx2", HWY_AVX2, has_avx2},
    {"sse4", HWY_SSE4, has_sse4},
#elif HWY_ARCH_ARM
    {"neon", HWY_NEON, nullptr},
#endif
};

// Best first, the plain loops last. It has no destructor, because threads may still use it while the process
// exits.
struct Tables {
  std::array<Kernels, std::size(kInstructionSets) + 1> list;
  size_t count = 0;

  std::span<const Kernels> all() const { return std::span(list).first(count); }
};
static_assert(std::is_trivially_destructible_v<Tables>);

std::span<const Kernels> tables() {
  static const Tables tables = [] {
    Tables made;
    for (const InstructionSet& set : kInstructionSets) {
      if ((HWY_TARGETS & set.target) == 0 || (set.supported && !set.supported())) continue;
      Kernels& kernels = made.list[made.count++] = scalar_kernels();
      kernels.instructions = set.name;
      add_mmt4d_simd(set.target, set.has_bf16, kernels);
      add_mmt4d_8x4_simd(set.target, kernels);
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
