// Loads native modules from shared libraries. Every possible check is made before code of the library runs.
// Libraries are never unloaded.
#pragma once

#include <string>

#include "base/status.h"
#include "vm/module/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

// Checks the note, versions and sanitizer, loads the library, negotiates, and validates the definition.
// `argument` is passed to the module's create_state. Loading a library twice gives two modules. NOT_FOUND: no
// such file, or not a native module. INVALID_ARGUMENT: a damaged file or a wrong definition. INCOMPATIBLE:
// machine, versions, sanitizer, or refused by the library. UNAVAILABLE: a library that it depends on is
// missing.
Result<Ref<NativeModule>> load_shared_module(const std::string& path, std::string argument,
                                             TypeRegistry& types);

}  // namespace halyard::vm
