// Scalars as functions take them: a conversion that would lose something is refused.
#pragma once

#include "handles.h"

namespace halyard::c {

// The value as `wanted`. INVALID_ARGUMENT, with the argument's place and name: an object where a number is
// taken or the other way round, or a number that `wanted` does not hold exactly.
Result<vm::Variant> convert_argument(const Function& function, size_t index, const halyard_value_t& value,
                                     vm::ValueType wanted);

}  // namespace halyard::c
