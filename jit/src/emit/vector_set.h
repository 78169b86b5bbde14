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
  // Rows of sums that registers hold, of so many vectors of `lanes` numbers each.
  uint32_t lanes = 8;
  uint32_t rows = 4;
  uint32_t vectors = 2;
  uint32_t rows_of_16 = 4;  // the same for one vector of 16 numbers
  // The same where few rows are multiplied: enough sums that additions do not wait for each other.
  uint32_t few_rows = 2;
  uint32_t vectors_of_few = 4;
};
VectorSet vector_set(const llvm::LLVMTargetMachine& machine);

}  // namespace halyard::jit
