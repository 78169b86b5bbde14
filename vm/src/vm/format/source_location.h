// Where an instruction comes from in the program's source, as the module's debug database tells. Advisory: it
// may be missing or wrong. Specified by module-format.md, section 12.
#pragma once

#include <cstdint>
#include <string>

#include "vm/module/bytecode_module.h"

namespace halyard::vm {

// "model.mlir:12:5", with what it was inlined into or fused with; empty where nothing is known of just this
// pc.
std::string source_location(const BytecodeModule& module, uint32_t function, uint32_t pc);

}  // namespace halyard::vm
