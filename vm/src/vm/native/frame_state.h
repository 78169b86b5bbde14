// The call of a frame function, with what the host adds to it for the services.
#pragma once

#include "halyard/program.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

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
