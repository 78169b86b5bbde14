// The library that compiles kernels, halyard-emit-llvm.so.
#pragma once

#include "base/status.h"
#include "vm/decode/emit_abi.h"

namespace halyard::aot {

// Opens it on first use. NOT_FOUND: it is not installed; INCOMPATIBLE: it is of another build; UNAVAILABLE:
// it cannot be loaded.
Result<halyard_emit_fn> open_emitter();

}  // namespace halyard::aot
