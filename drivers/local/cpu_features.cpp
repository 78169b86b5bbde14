// The table of features, by architecture.
#include "cpu_features.h"

#include <algorithm>
#include <iterator>

namespace halyard::local {

namespace {

struct Feature {
  std::string_view name;
  bool (*present)();
};

#if defined(__x86_64__)
// The compiler's support library looks at cpuid and at what the operating system saves (xgetbv).
#define FEATURE(name) {name, [] { return __builtin_cpu_supports(name) != 0; }}
constexpr Feature kFeatures[] = {
    FEATURE("sse3"),
    FEATURE("ssse3"),
    FEATURE("sse4.1"),
    FEATURE("sse4.2"),
    FEATURE("sse4a"),
    FEATURE("avx"),
    FEATURE("fma"),
    FEATURE("fma4"),
    FEATURE("xop"),
    FEATURE("f16c"),
    FEATURE("avx2"),
    FEATURE("avx512f"),
    FEATURE("avx512cd"),
    FEATURE("avx512vl"),
    FEATURE("avx512dq"),
    FEATURE("avx512bw"),
    FEATURE("avx512ifma"),
    FEATURE("avx512vbmi"),
    FEATURE("avx512vpopcntdq"),
    FEATURE("avx512vnni"),
    FEATURE("avx512vbmi2"),
    FEATURE("avx512bitalg"),
    FEATURE("avx512bf16"),
    FEATURE("avx512fp16"),
    FEATURE("amx-tile"),
    FEATURE("amx-int8"),
    FEATURE("amx-bf16"),
};
#undef FEATURE

const Feature* find(std::string_view name) {
  const auto* found = std::ranges::find(kFeatures, name, &Feature::name);
  return found == std::end(kFeatures) ? nullptr : found;
}
#else
const Feature* find(std::string_view) { return nullptr; }
#endif

}  // namespace

std::optional<bool> cpu_feature(std::string_view name) {
  const Feature* feature = find(name);
  if (!feature) return std::nullopt;
  return feature->present();
}

}  // namespace halyard::local
