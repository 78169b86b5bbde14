// The services of programs that are native modules (halyard/program.h).
#pragma once

#include "halyard/program.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

// The program's part of a call, which is in a context.
halyard_program_call_t program_call(const NativeProgram& program, const NativeCall& call);

}  // namespace halyard::vm
