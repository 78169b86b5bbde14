// Transposes a square of elements in vector registers.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace halyard::jit::contraction {

// Whether vectors of this many elements of these bytes can be transposed.
bool can_transpose(uint64_t lanes, uint64_t element_bytes);

// `rows` are as many vectors as each has lanes. Element i of the result's vector k is element k of rows[i].
std::vector<llvm::Value*> transpose(llvm::IRBuilderBase& b, std::vector<llvm::Value*> rows,
                                    uint64_t element_bytes);

}  // namespace halyard::jit::contraction
