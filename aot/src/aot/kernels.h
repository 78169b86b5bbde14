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

// The calling convention of such kernels (exec-vmvx.md, section 2).
inline constexpr std::string_view kKernelConvention = "0rrriiiiiiiii_v";

// An attribute of a kernel, a number as C writes it; 0 if it is missing.
uint32_t attribute_number(const vm::Export& kernel, std::string_view key);

// The format of executables that the compiler linked statically: kernels in an object file.
inline constexpr std::string_view kStaticFormat = "static";

struct Kernels {
  uint32_t constant = 0;  // the index of the constant that was the executable
  std::string library;    // of an object file: the name of its query function; then there is no module
  Ref<vm::BytecodeModule> module;
  Plan plan;

  // The table of the executable's functions, as C; `has_static`: the program has kernels in object files,
  // too.
  std::string table(bool has_static) const;
};

// The declaration of the query function of an object file.
std::string static_prototype(const Kernels& kernels);
bool has_static(const std::vector<Kernels>& all);

// The executables among the constants of a host module. INVALID_ARGUMENT: a function is no kernel.
// UNIMPLEMENTED: an executable needs what C without a runtime cannot have, or the program has executables,
// but none is portable.
Result<std::vector<Kernels>> kernels_of(const Plan& host);

}  // namespace halyard::aot
