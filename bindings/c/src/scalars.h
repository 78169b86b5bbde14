// Converts scalar arguments of functions; a conversion that would lose information is refused.
#pragma once

#include "handles.h"

namespace halyard::c {

// Converts the value to `wanted`. INVALID_ARGUMENT, with the argument's position and name: an object instead
// of a number, a number instead of an object, or a number that `wanted` does not represent exactly.
Result<vm::Variant> convert_argument(const Function& function, size_t index, const halyard_value_t& value,
                                     vm::ValueType wanted);

}  // namespace halyard::c
