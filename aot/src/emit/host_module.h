// HostModule: a module whose host code chooses among executables. The calls that create executables become
// calls of a new function, which asks the device and passes the executable that suits it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "emit/processors.h"
#include "vm/module/bytecode_module.h"

namespace halyard::aot {

// A library of kernels that may take the place of a portable executable.
struct NativeVariant {
  size_t processor;  // index
  std::vector<uint8_t> library;
};
struct ExecutableVariants {
  uint32_t constant;                    // the ordinal of the portable executable
  std::vector<NativeVariant> variants;  // in the order of the processors: the best one last
};

// The archive of the module with the variants. With `keep_portable` false their portable executables are left
// out. UNIMPLEMENTED: the host code does not create executables in a way that is known.
Result<std::vector<uint8_t>> with_variants(std::span<const uint8_t> archive, const vm::BytecodeModule& module,
                                           std::span<const Processor> processors,
                                           std::span<const ExecutableVariants> executables,
                                           bool keep_portable);

}  // namespace halyard::aot
