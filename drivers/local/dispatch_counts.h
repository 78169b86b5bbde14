// The operations and bytes of a dispatch of a bytecode kernel.
#pragma once

#include <span>
#include <vector>

#include "halyard/driver.h"
#include "kernel_runner.h"
#include "vm/count/kernel_counts.h"

namespace halyard::local {

// See vm/count/kernel_counts.h.
inline Result<vm::KernelCounts> counts_of_dispatch(
    const vm::BytecodeModule& module, const Kernel& kernel, const halyard_command_dispatch_t& dispatch,
    const WorkgroupCount& workgroups, decltype(vm::KernelArguments::import_operations) import_operations,
    uint64_t max_steps = vm::KernelArguments().max_steps, bool finds_overwritten = false) {
  std::vector<uint64_t> lengths(dispatch.binding_count);
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) lengths[i] = dispatch.bindings[i].length;
  return vm::count_kernel(module, module.exports()[dispatch.function].function,
                          {.local_memory = kernel.local_memory,
                           .constants = std::as_bytes(std::span(dispatch.constants, dispatch.constant_count)),
                           .binding_lengths = lengths,
                           .workgroups = workgroups,
                           .import_operations = import_operations,
                           .max_steps = max_steps,
                           .finds_overwritten = finds_overwritten});
}

}  // namespace halyard::local
