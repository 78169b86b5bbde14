// Native modules out of shared libraries: from a file's note to a module. What can be refused is refused
// before any code of the library runs; it is never unloaded.
#pragma once

#include <string>

#include "base/status.h"
#include "vm/native/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

// Note, versions, sanitizer, dlopen, negotiation, definition. `argument` is for the module's create_state.
// Loading a library twice gives two modules. NOT_FOUND: no such file, or not a native module;
// INVALID_ARGUMENT: damaged, or a definition that is wrong in itself; INCOMPATIBLE: machine, versions,
// sanitizer, refusal; UNAVAILABLE: what the library needs is missing.
Result<Ref<NativeModule>> load_shared_module(const std::string& path, std::string argument,
                                             TypeRegistry& types);

}  // namespace halyard::vm
