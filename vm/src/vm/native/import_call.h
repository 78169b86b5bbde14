// Calls of native modules to functions that they import: of native modules, with registers made for the call,
// and of bytecode, in an invocation of their own that the caller keeps while it waits.
#pragma once

#include "base/status.h"
#include "vm/native/frame_state.h"

namespace halyard::vm {

// services->import_call. `frame` is in a context.
Result<> call_import(FrameCall& frame, halyard_import_call_t& call);

}  // namespace halyard::vm
