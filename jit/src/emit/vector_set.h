// The vector instructions of a processor, as far as microkernels depend on them.
#pragma once

#include <llvm/Target/TargetMachine.h>

#include <cstdint>

namespace halyard::jit {

struct VectorSet {
  bool fuses = false;      // products and sums of floats, where the kernels of local devices fuse them
  bool has_pairs = false;  // one instruction multiplies 16-bit numbers and adds two products (of x86)
  bool has_vnni = false;
  bool flushes = false;  // arithmetic can flush denormal numbers to zero
  bool is_x86 = false;
  bool is_arm = false;
  uint32_t register_lanes = 4;  // of 32 bits
  uint32_t lanes = 8;           // of a vector of sums, which has one register or more
  uint32_t sums = 16;           // registers for sums, beside those for other operands
  // The same if the columns are in a panel: rows, and vectors of each.
  uint32_t panel_rows = 4;
  uint32_t panel_vectors = 2;
};
VectorSet vector_set(const llvm::LLVMTargetMachine& machine);

}  // namespace halyard::jit
