// Comparisons of the memory that nests access, in code that runs before them.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// Whether the ranges do not overlap. `expand` writes the value of an address.
inline llvm::Value* are_apart(llvm::IRBuilderBase& b, const Nest::Range& x, const Nest::Range& y,
                              llvm::function_ref<llvm::Value*(const llvm::SCEV*)> expand) {
  const auto is_before = [&](const Nest::Range& first, const Nest::Range& second) {
    llvm::Value* const end = b.CreatePtrAdd(expand(first.last), b.getInt64(first.element_bytes));
    return b.CreateICmpULE(end, expand(second.first));
  };
  return b.CreateOr(is_before(x, y), is_before(y, x));
}

}  // namespace halyard::jit::contraction
