// The instruction sets beyond the core that modules and functions may require.
#pragma once

#include <cstdint>

namespace halyard::vm {

enum Feature : uint32_t { kFeatureF32 = 1, kFeatureF64 = 2, kFeatureYield = 4, kFeatureUnwind = 8 };

// The requirements that modules and functions of this bytecode version may have. The last two only describe
// what a function may do; this runtime supports both.
constexpr uint32_t known_features(uint32_t bytecode_version) {
  return kFeatureF32 | kFeatureF64 | (bytecode_version < 17 ? 0 : kFeatureYield | kFeatureUnwind);
}

}  // namespace halyard::vm
