// Sums of products of small integers, such as 8-bit elements with or without zero points. The order of
// integer terms does not matter, and processors add two such products to a sum of 32 bits at a time.
#pragma once

#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>

#include <optional>
#include <vector>

#include "codegen/contraction/dependence.h"
#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// A factor of 16 bits: an element of 8 or 16 bits, extended, plus or minus an offset that is the same for all
// elements.
struct Factor {
  llvm::LoadInst* load = nullptr;
  bool is_signed = false;
  llvm::Value* offset = nullptr;  // null: none
  bool is_subtracted = false;
};

struct Pairs {
  Factor of_rows;     // differs between rows, not between outputs
  Factor of_outputs;  // differs between outputs, not between rows
};
// The values between which offsets that are known at run time only must lie, so that factors have 16 bits.
inline constexpr int64_t kLeastOffset = -(int64_t{1} << 14), kMostOffset = (int64_t{1} << 14) - 1;

// The factors of the nest's terms, if each output has one sum of 32 bits of such products.
std::optional<Pairs> find_pairs(const Nest& nest, Dependence& dependence, llvm::ScalarEvolution& evolution);

// The instruction of the function's processor that multiplies `lanes` pairs and adds both products of each;
// not_intrinsic if there is none.
llvm::Intrinsic::ID product_of_pairs(const llvm::Function& function, uint64_t lanes);
inline bool can_add_pairs(const llvm::Function& function, uint64_t lanes) {
  return product_of_pairs(function, lanes) != llvm::Intrinsic::not_intrinsic;
}

}  // namespace halyard::jit::contraction
