// The verifier: proves before a function runs that every instruction lies inside it, names only registers,
// blocks, types, globals, constants and functions that exist, and passes calls what their signatures ask for.
// After it, decoder and interpreter only assert. Specified by verifier-and-execution.md, section 3, its
// column "Required".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/calling_convention.h"

namespace halyard::vm {

// Every rule of section 3. The status is the one stated there; a failure in the body is annotated with its
// place.
Result<> verify_function(const BytecodeModule& module, uint32_t function);

// "at module.name+0000001A", or "at module@3+0000001A" where the function has no name.
std::string code_location(const BytecodeModule& module, uint32_t function, uint32_t pc);

// An import that states no convention cannot be checked before it is linked. `providers` has one element for
// each import of the module: the provider's convention where the import stated none and was resolved, else
// null (nothing to check). Fails as verify_function would have failed, had the importer stated that
// convention. What cannot be read of a function is passed over: the verifier refuses it before it can run.
// (calling-convention.md, section 5)
Result<> check_import_calls(const BytecodeModule& module, std::span<const Convention* const> providers);

}  // namespace halyard::vm
