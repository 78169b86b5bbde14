// Which build of this library, with which LLVM.
#pragma once

#include <string>

namespace halyard::jit {

// The linker's digest of the library, and LLVM's version. Empty where the linker has left none.
std::string build_id();

}  // namespace halyard::jit
