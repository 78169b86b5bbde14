// The table of features, by architecture.
#include "base/cpu_features.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) || defined(__riscv)
#include <sys/auxv.h>
#endif

namespace halyard {

namespace {

#if defined(__x86_64__)
struct Feature {
  std::string_view name;
  uint8_t bit;  // of word 0
  bool (*present)();
};

// Requests the use of AMX tiles. Without permission, the first tile instruction kills the process.
bool tiles_allowed() {
  constexpr long kAskForComponent = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;             // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kAskForComponent, kTileData) == 0;
}

// The compiler's support library checks cpuid and the state that the operating system saves (xgetbv).
#define FEATURE(bit, name) {name, bit, [] { return __builtin_cpu_supports(name) != 0; }}
#define TILE_FEATURE(bit, name) \
  {name, bit, [] { return __builtin_cpu_supports(name) != 0 && tiles_allowed(); }}
constexpr Feature kFeatures[] = {
    FEATURE(0, "sse3"),
    FEATURE(1, "ssse3"),
    FEATURE(2, "sse4.1"),
    FEATURE(3, "sse4.2"),
    FEATURE(4, "sse4a"),
    FEATURE(10, "avx"),
    FEATURE(11, "fma"),
    FEATURE(12, "fma4"),
    FEATURE(13, "xop"),
    FEATURE(14, "f16c"),
    FEATURE(15, "avx2"),
    FEATURE(20, "avx512f"),
    FEATURE(21, "avx512cd"),
    FEATURE(22, "avx512vl"),
    FEATURE(23, "avx512dq"),
    FEATURE(24, "avx512bw"),
    FEATURE(25, "avx512ifma"),
    FEATURE(26, "avx512vbmi"),
    FEATURE(27, "avx512vpopcntdq"),
    FEATURE(28, "avx512vnni"),
    FEATURE(29, "avx512vbmi2"),
    FEATURE(30, "avx512bitalg"),
    FEATURE(31, "avx512bf16"),
    FEATURE(32, "avx512fp16"),
    TILE_FEATURE(50, "amx-tile"),
    TILE_FEATURE(51, "amx-int8"),
    TILE_FEATURE(52, "amx-bf16"),
};
#undef FEATURE
#undef TILE_FEATURE

bool is_present(const Feature& feature) { return feature.present(); }

#elif defined(__aarch64__) || defined(__riscv)
// Processor features as reported by the kernel: bits of getauxval(AT_HWCAP) and getauxval(AT_HWCAP2).
struct Feature {
  std::string_view name;
  uint8_t bit;  // of word 0
  uint8_t capability_word;
  uint8_t capability_bit;
};

#if defined(__aarch64__)
constexpr Feature kFeatures[] = {
    {"fp-armv8", 0, 1, 0},     {"lse", 1, 1, 8},          {"fullfp16", 10, 1, 10},    {"fp16fml", 11, 1, 23},
    {"dotprod", 12, 1, 20},    {"i8mm", 13, 2, 13},       {"bf16", 14, 2, 14},        {"sve", 20, 1, 22},
    {"sve2", 21, 2, 1},        {"sve2p1", 22, 2, 36},     {"sve2-bitperm", 23, 2, 4}, {"f32mm", 24, 2, 10},
    {"f64mm", 25, 2, 11},      {"sme", 30, 2, 23},        {"sme2", 31, 2, 37},        {"sme2p1", 32, 2, 38},
    {"sme-f16f16", 33, 2, 42}, {"sme-f64f64", 34, 2, 25}, {"sme-i16i64", 35, 2, 24},
};
#else
constexpr Feature kFeatures[] = {{"v", 0, 1, 'v' - 'a'}, {"rvv", 0, 1, 'v' - 'a'}};
#endif

bool is_present(const Feature& feature) {
  const uint64_t word = getauxval(feature.capability_word == 1 ? AT_HWCAP : AT_HWCAP2);
  return (word >> feature.capability_bit & 1) != 0;
}
#else
struct Feature {
  std::string_view name;
  uint8_t bit;
};
constexpr std::array<Feature, 0> kFeatures = {};
bool is_present(const Feature&) { return false; }
#endif

}  // namespace

std::optional<bool> cpu_feature(std::string_view name) {
  const auto* const found = std::ranges::find(kFeatures, name, &Feature::name);
  if (found == std::end(kFeatures)) return std::nullopt;
  return is_present(*found);
}

ProcessorData processor_data() {
  ProcessorData data = {};
  for (const Feature& feature : kFeatures)
    if (is_present(feature)) data[0] |= uint64_t{1} << feature.bit;
  return data;
}

}  // namespace halyard
