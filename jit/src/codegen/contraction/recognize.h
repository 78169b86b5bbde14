// Finds contractions.
#pragma once

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <optional>
#include <utility>
#include <vector>

#include "codegen/contraction/chain.h"
#include "codegen/contraction/nest.h"

namespace halyard::jit::contraction {

// The most terms that nests which are written together add without a look at the stop word. A processor adds
// so many in some milliseconds.
inline constexpr uint64_t kMaxTermsTogether = uint64_t{1} << 25;
// Marks the innermost loop of sums that are also written alone, where they may not be together, and the
// outermost ones of their neighbours.
inline constexpr char kSeparate[] = "halyard.separate";

// The bytes that a load or store accesses.
inline uint64_t size_of(llvm::Instruction* access) {
  return access->getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(access)).getFixedValue();
}

inline bool is_function_call(const llvm::Instruction& instruction) {
  return llvm::isa<llvm::CallInst>(instruction) && !llvm::isa<llvm::IntrinsicInst>(instruction);
}

class Recognizer {
 public:
  Recognizer(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

  // The contraction around this innermost loop.
  std::optional<Nest> find(llvm::Loop* innermost);
  // The nest of element-wise loops, without terms, around this innermost loop.
  std::optional<Nest> find_elementwise(llvm::Loop* innermost);
  // The chain that begins with this loop.
  std::optional<Chain> find_chain(llvm::Loop* first);
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
  // What the loops over rows may contain.
  enum class Stops : bool { one, any };
  void add_all_rows(Nest& nest, Stops stops);
  bool add_rows(Nest& nest, Stops stops);
  bool is_loop_of_rows(llvm::Loop* rows, Nest& nest, Stops stops);
  bool make_invariant(llvm::Value* value, llvm::Loop& loop);
  bool is_known_after(llvm::PHINode& phi, llvm::Loop& loop);
  bool is_recomputable(llvm::Value* value, const Nest& nest);
  bool compute_recomputable(llvm::Instruction* instruction, const Nest& nest);
  // An address that is affine in the counters: that of the first iteration, and the stride in each loop, null
  // if there is none.
  struct Address {
    const llvm::SCEV* start;
    std::vector<const llvm::SCEV*> strides;
  };
  std::optional<Address> affine(llvm::Value* pointer, const Nest& nest);
  std::optional<std::vector<const llvm::SCEV*>> strides(llvm::Value* pointer, const Nest& nest) {
    std::optional<Address> address = affine(pointer, nest);
    return address ? std::optional(std::move(address->strides)) : std::nullopt;
  }
  // neighbours.cpp
  bool add_neighbours(Nest& sums);
  bool is_fill(llvm::Loop* outermost, Nest& sums);
  bool is_epilogue(llvm::Loop* outermost, Nest& sums);
  bool is_elementwise(Nest& nest, llvm::Loop* outermost, const Nest& sums);
  bool have_same_counts(const Nest& nest, Nest& sums);
  bool is_of_output(llvm::Value* pointer, const Nest& nest, const Nest& sums);
  bool are_contiguous(llvm::StoreInst* store, Nest& epilogue);
  bool is_defined_as(const llvm::SCEV* expression, llvm::Value* value);
  bool move_before(llvm::Value* value, llvm::Instruction* place);
  llvm::Value* same_on_all_ways(const llvm::PHINode& phi, llvm::Instruction* place);
  bool are_inputs_known(const Nest& epilogue, Nest& sums);
  bool keep_apart(llvm::Instruction* x, const Nest& of_x, llvm::Instruction* y, const Nest& of_y,
                  const llvm::Loop* before, Nest& together);
  std::optional<Nest::Range> range(llvm::Instruction* access, const Nest& nest, const llvm::Loop* before);
  bool is_repeatable(const Nest& sums);
  bool join(const llvm::Loop& first, const llvm::Loop& from, const llvm::Loop& to, Nest& sums);
  bool make_available(llvm::BasicBlock& block, const llvm::Loop& before, Nest& sums);
  bool is_known_before(const llvm::SCEV* value, const llvm::Loop* outermost);
  // find_chain.cpp
  bool is_link(Nest& nest, llvm::Loop* outermost);
  bool has_long_rows(const Nest& nest);
  bool is_of_its_own(llvm::Instruction* access, const Nest& nest);
  bool is_same_element(llvm::Instruction* x, const Nest& of_x, llvm::Instruction* y, const Nest& of_y);
  bool keep_apart(llvm::Instruction* x, const Nest& of_x, llvm::Instruction* y, const Nest& of_y,
                  Chain& chain);
  llvm::StoreInst* store_of(llvm::LoadInst* load, const Nest& of_load, const Nest& nest);
  bool find_stored(const Nest& nest, Chain& chain);
  void find_dead_stores(Chain& chain);
  bool is_order_free(const Nest& before, const Nest& after, Chain& chain);
  llvm::Loop* next_nest(const llvm::Loop& from);

  llvm::LoopInfo& loops_;
  llvm::ScalarEvolution& evolution_;
  llvm::DominatorTree& dominators_;
  llvm::AAResults& aliases_;
  llvm::SCEVExpander expander_;
  llvm::DenseMap<llvm::Value*, bool> recomputable_;  // in the current nest
  bool changed_ = false;
  const char* reason_ = "";
};

}  // namespace halyard::jit::contraction
