// The portable executables of a module, compiled for a processor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "emit/processors.h"
#include "vm/decode/emit_abi.h"
#include "vm/module/bytecode_module.h"

namespace halyard::aot {

// A portable executable among the constants of a host module.
class PortableExecutable {
 public:
  // All of them. Fails with the verifier's status if a kernel is not valid.
  static Result<std::vector<PortableExecutable>> find(const vm::BytecodeModule& host);

  uint32_t constant() const { return constant_; }  // the ordinal of the host's constant
  size_t kernel_count() const { return kernels_.size(); }
  // Whether a kernel may ask for the sizes of tiles, which the library answers otherwise than a device may.
  bool asks_for_tiles() const;

  // The bytes of a library of its kernels. UNIMPLEMENTED: a kernel cannot be compiled; the text says which
  // and why.
  Result<std::vector<uint8_t>> compile(halyard_emit_fn emit, const Processor& processor,
                                       uint64_t dynamic_memory) const;

 private:
  struct DecodedKernel;
  Result<> add_kernels();

  uint32_t constant_ = 0;
  std::string refusal_;  // why none of its kernels is compiled
  Ref<vm::BytecodeModule> module_;
  std::vector<std::shared_ptr<const DecodedKernel>> kernels_;
};

}  // namespace halyard::aot
