// Which elements of memory the accesses of loops have in common.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "plan/nodes.h"
#include "plan/values.h"

namespace halyard::aot {

// How two memories of a kernel lie to each other.
struct Overlap {
  enum class Kind : uint8_t { none, same, unknown };
  Kind kind = Kind::none;
  int64_t distance = 0;  // of `same`: where the second one begins in the first one
};
using OverlapOf = std::function<Overlap(MemoryId, MemoryId)>;

// Whether two accesses have no byte in common, whatever the turns of the loops around them.
bool lie_apart(const Access& a, const Access& b, const Values& values, const OverlapOf& overlap);
// Whether both are of the same element, in the same turns of the loops around them.
bool is_same_element(const Access& a, const Access& b, const Values& values);
// Whether all turns of the counters access other elements; each counter is given with the number of its
// turns.
bool is_injective(const Access& access, const std::vector<std::pair<ValueId, int64_t>>& counters,
                  const Values& values);
// The factor of the counter in the index; the index must be known.
int64_t stride_of(const Access& access, ValueId counter, const Values& values);

}  // namespace halyard::aot
