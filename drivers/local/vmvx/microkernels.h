// The native module `vmvx`, which VMVX executables import. Its functions check their operands and call a
// table of kernels. Specified by exec-vmvx.md, section 5.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels.h"
#include "vm/module/native_module.h"

namespace halyard::local::vmvx {

// The module's state in a context.
struct State {
  const Kernels& kernels;
  const uint32_t* stop;  // the word that stops the calling work; may be null
};

// `kernels` must outlive the module. Contexts on several threads may share it.
Ref<vm::NativeModule> create_module(const Kernels& kernels);

// Whether the module has a function with this name ("vmvx.pack") and calling convention ("": any).
bool has_function(std::string_view name, std::string_view convention);

// The calling convention of the function with this name; absent if there is none.
std::optional<std::string_view> convention_of(std::string_view name);

}  // namespace halyard::local::vmvx
