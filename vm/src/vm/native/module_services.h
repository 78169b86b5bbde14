// The host's services for native modules: statuses, buffers, lists, objects. One table serves all modules.
#pragma once

#include "halyard/module.h"
#include "vm/module/native_module.h"
#include "vm/object/native_object.h"

namespace halyard::vm {

const halyard_module_services_t& module_services();

// The handle by which a module refers to a type that it defines.
inline halyard_type_t to_handle(NativeType* type) { return reinterpret_cast<halyard_type_t>(type); }
inline NativeType& from_handle(halyard_type_t handle) { return *reinterpret_cast<NativeType*>(handle); }

}  // namespace halyard::vm
