// Functions that the loop passes share.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <cstdint>
#include <optional>

namespace halyard::jit {

// The value, if it is a constant that fits 64 bits without a sign. `value` may be null.
std::optional<uint64_t> constant_of(const llvm::SCEV* value);

// Whether the value can be computed before the loop without undefined behaviour.
bool is_known_before(const llvm::SCEV* value, const llvm::Loop* loop, llvm::ScalarEvolution& evolution,
                     const llvm::SCEVExpander& expander);

// The maximum number of iterations of a nest that is counted when the nest begins, to decide whether it may
// run without checks of the stop word. It is high, because a longer nest runs with all checks, which is slow.
inline constexpr uint64_t kMaxCountedTurns = uint64_t{1} << 25;

// How long an iteration takes, compared with one of 64 simple instructions; at least 1. A nest may run
// correspondingly fewer iterations without checks of the stop word.
uint64_t weight_of(const llvm::Loop& loop);

// Duplicates the loop. `condition` is a value at the end of its preheader. If it is true, the original loop
// runs, which the caller may then change. Otherwise a copy runs, whose loops have the attribute `mark`; the
// copy rarely runs and is not optimized. Updates `loops` and `dominators`.
struct Fork {
  llvm::BasicBlock* preheader;  // of the loop itself, a new one
  llvm::Loop* copy;
};
Fork fork_loop(llvm::Loop& loop, llvm::Value* condition, const char* mark, llvm::LoopInfo& loops,
               llvm::DominatorTree& dominators);

// Marks the loop and the loops in it as rarely run, so that LLVM neither unrolls nor vectorizes them, which
// would take long. Valid until LLVM vectorizes loops.
void leave_as_it_is(llvm::Loop& loop);
bool is_left_as_it_is(const llvm::Loop& loop);

}  // namespace halyard::jit
