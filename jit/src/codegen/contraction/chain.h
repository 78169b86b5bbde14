// A chain: nests that run one after the other, with the same numbers of iterations, each of which computes
// elements from those that the nests before it have stored in the same iteration. Written as one nest, its
// values stay in registers.
//
//   for i: T[i] = f(A[i]);  for i: C[i] = g(T[i], B[i])   becomes   for i: C[i] = g(f(A[i]), B[i])
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>

#include <string>
#include <vector>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

struct Chain {
  std::vector<Nest> nests;
  // What must hold for them to run as one, and what is done between them: the members `entered`, `apart` and
  // `releases` of a nest.
  Nest together;
  // Loads of what a store of the same iteration has stored.
  llvm::DenseMap<const llvm::LoadInst*, const llvm::StoreInst*> stored;
  // Stores to memory that nothing reads after the chain.
  llvm::SmallPtrSet<const llvm::StoreInst*, 8> dead;

  llvm::Loop* first() const { return nests.front().outermost(); }
};

// Writes the chain beside its nests, which run if they cannot be one. Returns what was decided, for a reader.
std::string write(const Chain& chain, llvm::ScalarEvolution& evolution);

}  // namespace halyard::jit::contraction
