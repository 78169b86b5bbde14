// Checks processor levels.
#include "processor.h"

#include <iterator>

#include "halyard/x86_features.hpp"

namespace halyard::local {

namespace {

#if defined(__x86_64__)
struct Level {
  const char* name;
  bool (*present)();
};
// In the order of their bits.
constexpr Level kLevels[] = {
    {"x86-64", [] { return true; }},
    {"x86-64-v2", x86::level2},
    {"x86-64-v3", x86::level3},
    {"x86-64-v4", x86::level4},
};
#endif

}  // namespace

Result<> check_processor_levels(uint32_t levels) {
#if defined(__x86_64__)
  for (size_t i = 0; i < std::size(kLevels); ++i)
    if ((levels >> i & 1) != 0 && !kLevels[i].present())
      return fail(Code::INCOMPATIBLE,
                  "the library needs processor level {}, which this processor lacks; compile it for this "
                  "processor, for example with a lower level",
                  kLevels[i].name);
  if (levels >> std::size(kLevels) != 0)
    return fail(Code::INCOMPATIBLE,
                "the library needs an unknown processor level (bits {:#x}); compile it for "
                "x86-64-v4 or lower",
                levels);
#else
  (void)levels;
#endif
  return {};
}

}  // namespace halyard::local
