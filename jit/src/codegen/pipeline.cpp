// The passes and their order.
#include "codegen/pipeline.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Support/Error.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/Mem2Reg.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>

#include "codegen/contraction/pass.h"
#include "codegen/hoist.h"
#include "codegen/interleave.h"
#include "codegen/loops.h"
#include "codegen/merge_loops.h"
#include "codegen/translate.h"
#include "codegen/uncoalesce.h"
#include "codegen/written_buffers.h"

namespace halyard::jit {

namespace {

// Rotates loops, so that the exit test is at the end. Excludes loops that begin with a range check: their
// exit test is already at the end, and rotating them would move the range check to the end instead.
struct RotateLoops : llvm::PassInfoMixin<RotateLoops> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    const llvm::Instruction* const end = loop.getHeader()->getTerminator();
    if (end->hasMetadata(kCheck) || end->hasMetadata(kStop)) return llvm::PreservedAnalyses::all();
    return llvm::LoopRotatePass().run(loop, analyses, results, updater);
  }
};

// With N exits of different counts, IndVarSimplify takes O(N^3) time.
constexpr size_t kMaxCountedExits = 16;

bool has_many_exits(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, 2 * kMaxCountedExits> exits;
  loop.getExitingBlocks(exits);
  return exits.size() > kMaxCountedExits;
}

// Simplifies induction variables, with two exceptions. Loop copies that keep all checks are skipped, because
// they rarely run and contain most of the conditions that this pass examines. Loops with many checks that
// could not be hoisted are skipped, because they take too long.
struct SimplifyCounters : llvm::PassInfoMixin<SimplifyCounters> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    if (is_left_as_it_is(loop) || has_many_exits(loop)) return llvm::PreservedAnalyses::all();
    return llvm::IndVarSimplifyPass().run(loop, analyses, results, updater);
  }
};

// Removes duplicate checks.
llvm::FunctionPassManager first_passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::ADCEPass());
  return passes;
}

llvm::FunctionPassManager other_passes() {
  llvm::FunctionPassManager passes;
  // No pass here may merge checks: each branch must stay one check.
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(UncoalesceLoops());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::ADCEPass());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(RotateLoops()));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(HoistChecks());

  const auto clean = [&] {
    passes.addPass(llvm::SimplifyCFGPass());
    passes.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::EarlyCSEPass(true));
  };
  const auto move_out = [&] {
    llvm::LoopPassManager loop;
    loop.addPass(llvm::LoopRotatePass());
    loop.addPass(llvm::LICMPass(llvm::LICMOptions()));
    loop.addPass(SimplifyCounters());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
  };
  clean();
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(TileContractions());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(NoteWrittenBuffers());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  move_out();
  passes.addPass(llvm::GVNPass());
  clean();
  move_out();
  passes.addPass(MergeLoops());
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(InterleaveLoops());
  passes.addPass(llvm::LoopVectorizePass());
  passes.addPass(llvm::InstCombinePass());
  // Only full unrolling, because vector loops are interleaved already, and iterations of other loops depend
  // on each other.
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2).setPartial(false).setRuntime(false)));
  clean();
  // Keeps the vectorized outputs of a contraction in registers while their terms are added.
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::ADCEPass());
  return passes;
}

// Each exit of compiled code stores the registers that are live there, so a function can become far larger
// than its bytecode. Kernels of compiled programs have at most 10000 instructions and 241 branches at this
// point.
constexpr size_t kMaxInstructions = 16384;
constexpr size_t kMaxLoopExits = 256;

template <typename... Arguments>
llvm::Error takes_too_long(const char* format, Arguments... arguments) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), format, arguments...);
}

llvm::Error check_size(const llvm::Function& function) {
  const size_t count = function.getInstructionCount();
  if (count <= kMaxInstructions) return llvm::Error::success();
  return takes_too_long(
      "it would take too long to compile: it becomes %zu instructions, mostly for exits from compiled code; "
      "at most %zu are compiled",
      count, kMaxInstructions);
}

// Counts duplicate checks once, because a later pass removes the duplicates.
size_t count_exits(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*, kMaxLoopExits> blocks;
  loop.getExitingBlocks(blocks);
  llvm::SmallPtrSet<const llvm::Value*, 32> conditions;
  size_t others = 0;
  for (const llvm::BasicBlock* block : blocks) {
    const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(block->getTerminator());
    if (branch && branch->isConditional())
      conditions.insert(branch->getCondition());
    else
      ++others;
  }
  return conditions.size() + others;
}

llvm::Error check_exits(const llvm::LoopInfo& loops) {
  for (const llvm::Loop* loop : loops.getLoopsInPreorder())
    if (const size_t count = count_exits(*loop); count > kMaxLoopExits)
      return takes_too_long(
          "it would take too long to compile: a loop has %zu exits, for example by bounds checks; at most "
          "%zu are compiled",
          count, kMaxLoopExits);
  return llvm::Error::success();
}

}  // namespace

Pipeline::Pipeline(llvm::TargetMachine& machine)
#ifdef HALYARD_JIT_VERIFY
    : builder_(&machine, {}, {}, &callbacks_),
#else
    : builder_(&machine),
#endif
      first_passes_(first_passes()),
      other_passes_(other_passes()) {
#ifdef HALYARD_JIT_VERIFY
  verifying_.registerCallbacks(callbacks_, &modules_);
#endif
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(groups_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, groups_, modules_);
}

llvm::Error Pipeline::run(llvm::Module& module) {
  llvm::Error result = run_passes(module);
  loops_.clear();
  functions_.clear();
  groups_.clear();
  modules_.clear();
  return result;
}

llvm::Error Pipeline::run_passes(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    if (llvm::Error error = check_size(function)) return error;
    first_passes_.run(function, functions_);
    if (llvm::Error error = check_exits(functions_.getResult<llvm::LoopAnalysis>(function))) return error;
    other_passes_.run(function, functions_);
  }
  return llvm::Error::success();
}

}  // namespace halyard::jit
