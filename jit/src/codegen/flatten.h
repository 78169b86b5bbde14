// From an object file to an image: everything that code refers to lies in one piece, at distances that never
// change; addresses of other parts are read from a table in it.
#pragma once

#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include "shared/image.h"

namespace halyard::jit {

// `function` is the symbol that the image enters.
llvm::Expected<Image> flatten(const llvm::MemoryBuffer& object, llvm::StringRef function);

}  // namespace halyard::jit
