// Exports of modules in the C ABI: shared by module.cpp, signature.cpp and scalars.cpp.
#pragma once

#include <string>

#include "halyard/halyard.h"
#include "vm/module/module.h"

namespace halyard::c {

// OUT_OF_RANGE: the module has fewer exports.
Result<const vm::Export*> find_export(const vm::Module& module, uint32_t index);
// Whether the last two arguments of the function are fences.
bool is_asynchronous(const vm::Export& function);
// Fails if this host does not know the calling convention.
Result<halyard_function_description_t> describe(const vm::Export& function);
// " ('%x')", from the declaration; empty if the argument has no name.
std::string argument_name(const vm::Export& function, size_t index);

}  // namespace halyard::c
