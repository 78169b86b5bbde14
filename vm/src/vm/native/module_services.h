// The host's services for native modules: statuses, buffers, lists, objects. One table serves all modules.
#pragma once

#include "halyard/program.h"
#include "vm/module/native_module.h"
#include "vm/object/native_object.h"

namespace halyard::vm {

const halyard_module_services_t& module_services();

// The handle by which a module refers to a type that it defines.
inline halyard_type_t to_handle(NativeType* type) { return reinterpret_cast<halyard_type_t>(type); }
inline NativeType& from_handle(halyard_type_t handle) { return *reinterpret_cast<NativeType*>(handle); }

// The call that a frame function sees, and the data of its services. Exists only on the stack of
// FrameFunction::call.
struct FrameCall : halyard_module_call_t {
  NativeCall* native;
  bool waits;
  halyard_program_call_t of_program;
};
inline FrameCall& frame_of(halyard_module_call_t& call) { return static_cast<FrameCall&>(call); }
inline const FrameCall& frame_of(const halyard_module_call_t& call) {
  return static_cast<const FrameCall&>(call);
}

}  // namespace halyard::vm
