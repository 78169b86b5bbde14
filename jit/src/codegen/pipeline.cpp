// Which passes run in which order.
#include "codegen/pipeline.h"

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

#include "codegen/hoist.h"
#include "codegen/interchange.h"
#include "codegen/loops.h"
#include "codegen/translate.h"
#include "codegen/uncoalesce.h"

namespace halyard::jit {

namespace {

// Moves the test of a loop to its end. One that begins with a check of a range has its test there already: to
// move the check would make that the end of the loop.
struct RotateLoops : llvm::PassInfoMixin<RotateLoops> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    const llvm::Instruction* const end = loop.getHeader()->getTerminator();
    if (end->hasMetadata(kCheck) || end->hasMetadata(kStop)) return llvm::PreservedAnalyses::all();
    return llvm::LoopRotatePass().run(loop, analyses, results, updater);
  }
};

// Simplifies what loops count. The copies of loops with all of their checks stay as they are: they seldom
// run, and have most of the conditions that this pass looks at.
struct SimplifyCounters : llvm::PassInfoMixin<SimplifyCounters> {
  llvm::PreservedAnalyses run(llvm::Loop& loop, llvm::LoopAnalysisManager& analyses,
                              llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater& updater) {
    if (is_left_as_it_is(loop)) return llvm::PreservedAnalyses::all();
    return llvm::IndVarSimplifyPass().run(loop, analyses, results, updater);
  }
};

llvm::FunctionPassManager all_passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::ADCEPass());
  // Without tricks that join checks: one branch stays one check.
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
  passes.addPass(InterchangeContractions());
  move_out();
  passes.addPass(llvm::GVNPass());
  clean();
  move_out();
  passes.addPass(llvm::LoopVectorizePass());
  passes.addPass(llvm::InstCombinePass());
  // Wholly only: vectors are interleaved already, and turns of other loops wait for each other.
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2).setPartial(false).setRuntime(false)));
  clean();
  // Outputs of a contraction, in vectors now, stay in registers while their terms are added.
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::ADCEPass());
  return passes;
}

}  // namespace

Pipeline::Pipeline(llvm::TargetMachine& machine) : builder_(&machine), passes_(all_passes()) {
  builder_.registerModuleAnalyses(modules_);
  builder_.registerCGSCCAnalyses(groups_);
  builder_.registerFunctionAnalyses(functions_);
  builder_.registerLoopAnalyses(loops_);
  builder_.crossRegisterProxies(loops_, functions_, groups_, modules_);
}

void Pipeline::run(llvm::Module& module) {
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes_.run(function, functions_);
  loops_.clear();
  functions_.clear();
  groups_.clear();
  modules_.clear();
}

}  // namespace halyard::jit
