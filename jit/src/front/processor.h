// The environment on which generated code depends, besides the function and the code generator: the processor
// with its features, and the C library.
#pragma once

#include <string>

namespace halyard::jit {

// Identifies the environment: equal environments have equal bytes. Determined once, because cpuid takes long
// in a virtual machine. Any thread.
const std::string& processor_id();

}  // namespace halyard::jit
