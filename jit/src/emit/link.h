// Links object files to a shared library that refers to nothing outside.
#pragma once

#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

#include <memory>
#include <span>
#include <string>

namespace halyard::jit {

// An error has the text of the linker: for example, that a symbol is not defined. One thread at a time.
llvm::Expected<std::string> link(std::span<const std::unique_ptr<llvm::MemoryBuffer>> objects);

}  // namespace halyard::jit
