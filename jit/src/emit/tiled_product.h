// Products of tiles of a known width, as loops over vectors.
#pragma once

#include <llvm/IR/Function.h>

#include <cstdint>
#include <string>

#include "emit/loop_writer.h"
#include "emit/vector_set.h"

namespace halyard::jit {

// The operands of a product, as values of the function.
struct Product {
  llvm::Value *lhs, *lhs_stride, *rhs, *rhs_stride, *out, *out_stride;  // strides in elements
  llvm::Value *m, *n, *k, *m0, *n0, *k0;
  llvm::Value* accumulates;
};

// How the terms of one step are written.
enum class Terms : uint8_t {
  floats,
  pairs,    // of 16-bit numbers, which one instruction multiplies and adds
  quads,    // of 8-bit numbers, likewise: those of the right side unsigned, so 128 is added to them, and 128
            // times the sum of the left side is subtracted from the result
  integers  // of 16 bits, one by one
};

// Writes a function whose parameters are the values of `Product` but n0 and k0, which are `columns` and
// `units`. It makes panels if it `packs`; else it reads the tiles where they are, which pays off if they need
// no change, or if few rows need them.
llvm::Function* write_tiled_product(LoopWriter& w, const VectorSet& vectors, Terms terms, uint32_t columns,
                                    uint32_t units, bool packs, const std::string& name);

}  // namespace halyard::jit
