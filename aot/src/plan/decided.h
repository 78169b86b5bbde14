// Operations that the ranges of their operands decide.
#pragma once

#include <array>
#include <optional>

#include "plan/values.h"

namespace halyard::aot {

// The result of a comparison, or of the smaller or larger of two integers, that is known. Compilers warn
// about such expressions.
std::optional<ValueId> decided(Values& values, vm::Op op, const std::array<ValueId, 3>& operands);

}  // namespace halyard::aot
