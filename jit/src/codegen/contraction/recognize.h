// Finds contractions.
#pragma once

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <optional>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

class Recognizer {
 public:
  Recognizer(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  // The contraction around this innermost loop.
  std::optional<Nest> find(llvm::Loop* innermost);
  // Whether the function was changed even without finding a contraction, because conditions were moved out of
  // loops.
  bool changed() const { return changed_; }
  // Why the last call of find() found nothing.
  const char* reason() const { return reason_; }

 private:
  bool refuse(const char* reason) {
    reason_ = reason;
    return false;
  }
  bool is_perfect(Nest& nest);
  bool is_guard(const llvm::BranchInst& branch, Nest& nest);
  bool counts_outputs(Nest& nest);
  bool are_accesses_known(Nest& nest);
  bool are_outputs_apart(const Nest& nest);
  bool add_rows(Nest& nest);
  bool is_loop_of_rows(llvm::Loop* rows, Nest& nest);
  bool make_invariant(llvm::Value* value, llvm::Loop& loop);
  bool is_recomputable(llvm::Value* value, const Nest& nest);
  bool compute_recomputable(llvm::Instruction* instruction, const Nest& nest);
  std::optional<std::vector<const llvm::SCEV*>> strides(llvm::Value* pointer, const Nest& nest);
  bool is_known_before(const llvm::SCEV* value, const llvm::Loop* outermost);

  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::AAResults& aliases_;
  llvm::SCEVExpander expander_;
  llvm::DenseMap<llvm::Value*, bool> recomputable_;  // in the current nest
  bool changed_ = false;
  const char* reason_ = "";
};

}  // namespace halyard::jit::contraction
