// The source location of an instruction, from the module's debug database, which may be missing or wrong.
// Specified by module-format.md, section 12.
#pragma once

#include <cstdint>
#include <string>

#include "vm/module/bytecode_module.h"

namespace halyard::vm {

// For example "model.mlir:12:5", with the locations that it was inlined or fused into. Empty if this pc has
// none.
std::string source_location(const BytecodeModule& module, uint32_t function, uint32_t pc);

// The first location of a function that is known, in one line, without those that it was inlined into. Empty
// if there is none.
std::string source_of(const BytecodeModule& module, uint32_t function);

}  // namespace halyard::vm
