// Comparisons of the memory that nests access, in code that runs before them.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// Whether the ranges do not overlap. `expand` writes the value of an address.
llvm::Value* are_apart(llvm::IRBuilderBase& b, const Nest::Range& x, const Nest::Range& y,
                       llvm::function_ref<llvm::Value*(const llvm::SCEV*)> expand);

}  // namespace halyard::jit::contraction
