// Writes a contraction in a new order.
#pragma once

#include <llvm/IR/PassManager.h>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// Whether the values of the body can be vectors of outputs.
bool can_write(const Nest& nest);

// Replaces the nest. Outputs are summed tile by tile, in registers; each output still adds the same terms in
// the same order. The old nest remains where it may still run: if rows may overlap, or to stop between rows.
void write(const Nest& nest, llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace halyard::jit::contraction
