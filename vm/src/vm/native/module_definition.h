// Creates a native module from the C struct that describes it (halyard/module.h), of a shared library or an
// embedder. The struct is validated completely before the module is used.
#pragma once

#include <string>

#include "base/plugin.h"
#include "base/status.h"
#include "halyard/module.h"
#include "vm/module/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

// The plugin kind of native modules, and the supported ABI versions.
extern const PluginKind kModulePlugin;
constexpr AbiRange kModuleAbi = {HALYARD_MODULE_ABI_V1, HALYARD_MODULE_ABI_V1};

// Names that imports can refer to: letters, digits, '_', '$', '-', and '.' in function names.
bool is_module_name(std::string_view text);
bool is_function_name(std::string_view text);

struct NativeModuleOptions {
  std::string argument;  // passed to create_state
  std::string name;      // the required name of the definition; empty: any
};

// Copies the definition. The functions, `user` and callbacks that it points to must stay valid as long as the
// module. Its types are added to `types`. INCOMPATIBLE: wrong version or sizes. INVALID_ARGUMENT,
// UNIMPLEMENTED: bad names, conventions or flags, or duplicates; the message names the function.
// ALREADY_EXISTS: a type of that name.
Result<Ref<NativeModule>> create_native_module(const halyard_module_definition_t* definition,
                                               NativeModuleOptions options, TypeRegistry& types);

}  // namespace halyard::vm
