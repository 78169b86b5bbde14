// The portable executables of a program: constants that are modules of bytecode. Their functions become
// functions of the program, and their bytes are left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "aot/plan.h"

namespace halyard::aot {

// The format of executables with kernels in bytecode.
inline constexpr std::string_view kKernelFormat = "vmvx-bytecode-fb";

struct Kernels {
  uint32_t constant = 0;  // the index of the constant that was the executable
  Ref<vm::BytecodeModule> module;
  Plan plan;

  // The table of the executable's functions, as C.
  std::string table() const;
};

// The executables among the constants of a host module. INVALID_ARGUMENT: a function is no kernel.
// UNIMPLEMENTED: an executable needs what C without a runtime cannot have, or the program has executables,
// but none is portable.
Result<std::vector<Kernels>> kernels_of(const Plan& host);

}  // namespace halyard::aot
