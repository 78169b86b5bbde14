// Finds code that is likely to give wrong results although the module loads and runs.
#pragma once

#include <string>
#include <vector>

#include "vm/module/bytecode_module.h"

namespace halyard::c {

// Returns sentences without newlines, with unchanged names from the module. They depend only on the module's
// declarations of functions and on the shaders in it.
std::vector<std::string> warnings_about(const vm::BytecodeModule& module);

}  // namespace halyard::c
