// The native module `vmvx`: what VMVX executables import. Its functions check their operands and hand them to
// a table of kernels. Specified by exec-vmvx.md, section 5.
#pragma once

#include <string_view>

#include "kernels.h"
#include "vm/native/native_module.h"

namespace halyard::local::vmvx {

// The state of the module in a context.
struct State {
  const Kernels& kernels;
  const uint32_t* stop;  // the word that stops the work that its caller is part of; may be null
};

// `kernels` outlives the module. Contexts on any number of threads may share it.
Ref<vm::NativeModule> create_module(const Kernels& kernels);

// Whether the module has a function of that name ("vmvx.pack") and calling convention (empty: any).
bool has_function(std::string_view name, std::string_view convention);

}  // namespace halyard::local::vmvx
