// The native module `vmvx`, which VMVX executables import. Its functions check their operands and call a
// table of kernels. Specified by exec-vmvx.md, section 5.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
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

// The float operations of a call, which follow from its integer arguments (in order; absent: unknown). Absent
// if they are not known.
std::optional<uint64_t> operations_of(std::string_view name,
                                      std::span<const std::optional<int64_t>> integers);

}  // namespace halyard::local::vmvx
