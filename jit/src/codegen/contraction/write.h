// Writes a contraction in a new order.
#pragma once

#include <llvm/IR/PassManager.h>

#include <optional>
#include <string>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// Replaces the nest. Outputs are summed tile by tile, in registers; each output still adds the same terms in
// the same order. The old nest remains where it may still run: if rows may overlap, or to stop between rows.
// Returns what was decided, for a reader. If a value of the body cannot be a vector of outputs, nothing is
// changed, and there is no text.
std::optional<std::string> write(const Nest& nest, llvm::Function& function,
                                 llvm::FunctionAnalysisManager& analyses);

}  // namespace halyard::jit::contraction
