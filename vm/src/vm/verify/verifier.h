// The verifier. Before a function runs, it checks that every instruction is within the function's bytes,
// refers only to existing registers, blocks, types, globals, constants and functions, and passes to calls
// what their signatures require. The decoder and the interpreter rely on this and only assert. Specified by
// verifier-and-execution.md, section 3, column "Required".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/calling_convention.h"

namespace halyard::vm {

// Checks every rule of section 3. The status is the one that section 3 states; after a failure in the body it
// has a note with the location.
Result<> verify_function(const BytecodeModule& module, uint32_t function);

// "at module.name+0000001A", or "at module@3+0000001A" for a function without a name.
std::string code_location(const BytecodeModule& module, uint32_t function, uint32_t pc);

// Calls of an import that states no convention can only be checked after linking. `providers` has one element
// for each import of the module: the convention of its provider if the import states none and was resolved,
// otherwise null (nothing to check). Fails as verify_function would if the importer stated that convention.
// Functions that cannot be read are skipped: the verifier rejects them before they run.
// (calling-convention.md, section 5)
Result<> check_import_calls(const BytecodeModule& module, std::span<const Convention* const> providers);

}  // namespace halyard::vm
