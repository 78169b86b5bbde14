// What the passes over loops share.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

namespace halyard::jit {

// Whether the value is there before the loop, and can be computed there whatever the program does.
bool is_known_before(const llvm::SCEV* value, const llvm::Loop* loop, llvm::ScalarEvolution& evolution,
                     const llvm::SCEVExpander& expander);

// The loop twice: where `condition`, a value at the end of its preheader, is true, the loop itself runs,
// which may then be changed; else a copy of it, with the attribute `mark` at each of its loops. The copy
// seldom runs, and is left as it is. Returns the new preheader of the loop itself. Loops and dominators are
// kept up to date.
llvm::BasicBlock* fork_loop(llvm::Loop& loop, llvm::Value* condition, const char* mark, llvm::LoopInfo& loops,
                            llvm::DominatorTree& dominators);

// Whether the loop is such a copy: not to be unrolled nor made vectors of, which would take long to compile.
// Known until LLVM makes vectors of loops.
bool is_left_as_it_is(const llvm::Loop& loop);

}  // namespace halyard::jit
