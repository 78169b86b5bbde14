// What is likely to give wrong results although the module loads and runs, found by looking at it.
#pragma once

#include <string>
#include <vector>

#include "vm/module/bytecode_module.h"

namespace halyard::c {

// A sentence each, without a newline; names of the module are as they are. What it says depends on the module
// alone. Reads the declarations of functions, and of shaders what they declare.
std::vector<std::string> warnings_about(const vm::BytecodeModule& module);

}  // namespace halyard::c
