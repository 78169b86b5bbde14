// What native modules may ask of their host: statuses, buffers, lists, objects. One table for all.
#pragma once

#include "halyard/module.h"
#include "vm/native/native_object.h"

namespace halyard::vm {

const halyard_module_services_t& module_services();

// The handle by which a module names a type of its own.
inline halyard_type_t to_handle(NativeType* type) { return reinterpret_cast<halyard_type_t>(type); }
inline NativeType& from_handle(halyard_type_t handle) { return *reinterpret_cast<NativeType*>(handle); }

}  // namespace halyard::vm
