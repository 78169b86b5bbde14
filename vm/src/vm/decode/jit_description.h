// Describes decoded code for a compiler of machine code.
#pragma once

#include "vm/decode/code.h"
#include "vm/decode/jit_abi.h"

namespace halyard::vm {

// The fields that follow from the code; those that the process or the caller's options decide are zero or
// null. Refers to `code` and `name`.
halyard_jit_function_t described(const FunctionCode& code, const char* name);

}  // namespace halyard::vm
