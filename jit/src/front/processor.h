// What generated code depends on outside of a function and the code generator: the processor with its
// features, and the C library.
#pragma once

#include <string>

namespace halyard::jit {

// The same bytes where these are the same. Asked once, since cpuid takes long in a virtual machine. Any
// thread.
const std::string& processor_id();

}  // namespace halyard::jit
