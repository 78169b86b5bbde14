// Converts an object file to an image: one block with all sections that the code refers to, at fixed
// distances. The code reads external addresses from a table in the block.
#pragma once

#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include "shared/image.h"

namespace halyard::jit {

// `function` is the symbol of the image's entry function.
llvm::Expected<Image> flatten(const llvm::MemoryBuffer& object, llvm::StringRef function);

}  // namespace halyard::jit
