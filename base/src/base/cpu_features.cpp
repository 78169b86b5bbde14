// The table of features, by architecture.
#include "base/cpu_features.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>

#include "halyard/x86_features.hpp"
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

template <bool feature()>
bool with_tiles() {
  return feature() && tiles_allowed();
}

constexpr Feature kFeatures[] = {
    {"sse3", 0, x86::sse3},
    {"ssse3", 1, x86::ssse3},
    {"sse4.1", 2, x86::sse4_1},
    {"sse4.2", 3, x86::sse4_2},
    {"sse4a", 4, x86::sse4a},
    {"avx", 10, x86::avx},
    {"fma", 11, x86::fma},
    {"fma4", 12, x86::fma4},
    {"xop", 13, x86::xop},
    {"f16c", 14, x86::f16c},
    {"avx2", 15, x86::avx2},
    {"avx512f", 20, x86::avx512f},
    {"avx512cd", 21, x86::avx512cd},
    {"avx512vl", 22, x86::avx512vl},
    {"avx512dq", 23, x86::avx512dq},
    {"avx512bw", 24, x86::avx512bw},
    {"avx512ifma", 25, x86::avx512ifma},
    {"avx512vbmi", 26, x86::avx512vbmi},
    {"avx512vpopcntdq", 27, x86::avx512vpopcntdq},
    {"avx512vnni", 28, x86::avx512vnni},
    {"avx512vbmi2", 29, x86::avx512vbmi2},
    {"avx512bitalg", 30, x86::avx512bitalg},
    {"avx512bf16", 31, x86::avx512bf16},
    {"avx512fp16", 32, x86::avx512fp16},
    {"amx-tile", 50, with_tiles<x86::amx_tile>},
    {"amx-int8", 51, with_tiles<x86::amx_int8>},
    {"amx-bf16", 52, with_tiles<x86::amx_bf16>},
};

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
