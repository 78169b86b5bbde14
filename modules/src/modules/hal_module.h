// The native module `hal`, through which compiled programs use devices. One table, modules/hal_functions.inc,
// lists every version of every function; imports bind by name and signature. Specified by hal-module.md and
// hal-semantics.md.
#pragma once

#include <span>

#include "modules/function_table.h"
#include "modules/module_options.h"
#include "vm/module/native_module.h"
#include "vm/object/type_registry.h"

namespace halyard::modules {

// Adds hal.buffer, hal.device, ...: the eleven types that modules may name.
void add_hal_types(vm::TypeRegistry& types);

// The reported version. The module supports programs made for hal 0.5, 0.6 and 0.7.
inline constexpr uint32_t kHalVersion = 7;

std::span<const TableFunction> hal_signatures();

Ref<vm::NativeModule> create_hal_module(HalOptions options);

}  // namespace halyard::modules
