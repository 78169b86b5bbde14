// A native module from the C struct that describes it (halyard/module.h), wherever that came from: a shared
// library or an embedder. All that can be wrong with it is found here, before it is used.
#pragma once

#include <string>

#include "base/plugin.h"
#include "base/status.h"
#include "halyard/module.h"
#include "vm/native/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

// How a native module's library is told from others, and the versions of its contract that are spoken here.
extern const PluginKind kModulePlugin;
constexpr AbiRange kModuleAbi = {HALYARD_MODULE_ABI_V1, HALYARD_MODULE_ABI_V1};

// Names that imports can write: letters, digits, '_', '$', '-', and in functions '.'.
bool is_module_name(std::string_view text);
bool is_function_name(std::string_view text);

struct NativeModuleOptions {
  std::string argument;  // for create_state
  std::string name;      // that the definition must have; empty: any
};

// The definition is copied; what its functions, `user` and callbacks point to is used as long as the module
// lives. Its types are added to `types`. INCOMPATIBLE: version, sizes; INVALID_ARGUMENT, UNIMPLEMENTED:
// names, conventions, flags, duplicates, each naming the function; ALREADY_EXISTS: a type.
Result<Ref<NativeModule>> create_native_module(const halyard_module_definition_t* definition,
                                               NativeModuleOptions options, TypeRegistry& types);

}  // namespace halyard::vm
