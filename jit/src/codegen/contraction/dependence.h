// Which loops a value of a contraction depends on.
#pragma once

#include <llvm/ADT/DenseMap.h>

#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

class Dependence {
 public:
  explicit Dependence(const Nest& nest) : nest_(nest) {}
  static constexpr unsigned kRows = 1, kOutputs = 2, kOuterRows = 4;

  // Whether the value is known before the nest.
  bool is_the_same(const llvm::Value* value) const {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    return !instruction || !nest_.contains(instruction);
  }
  unsigned of(llvm::Value* value) {
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (!instruction || !nest_.contains(instruction)) return 0;
    if (const auto found = known_.find(value); found != known_.end()) return found->second;
    unsigned all = 0;
    if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
      const llvm::Loop* const loop = nest_.loop_of(*phi);
      const size_t level = nest_.level_of(loop);
      if (level == nest_.output_level()) all = kOutputs;
      if (level < nest_.row_loops) all = level + 1 == nest_.row_loops ? kRows : kOuterRows;
      all |= of(phi->getIncomingValueForBlock(loop->getLoopPreheader()));
    } else {
      for (llvm::Value* const operand : instruction->operands()) all |= of(operand);
    }
    return known_[value] = all;
  }

 private:
  const Nest& nest_;
  llvm::DenseMap<llvm::Value*, unsigned> known_;
};

// The size in bytes of the widest value that becomes a vector of outputs; 0 if one of them cannot.
uint64_t widest_value(const Nest& nest);

}  // namespace halyard::jit::contraction
