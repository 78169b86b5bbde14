// One contraction after the other, since each changes the loops.
#include "codegen/contraction/pass.h"

#include "codegen/contraction/recognize.h"
#include "codegen/contraction/write.h"
#include "codegen/loops.h"

namespace halyard::jit {

llvm::PreservedAnalyses TileContractions::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
      if (!loop->isInnermost() || is_left_as_it_is(*loop)) continue;
      contraction::Recognizer recognizer(function, analyses);
      const std::optional<contraction::Nest> nest = recognizer.find(loop);
      changed |= recognizer.changed();
      if (!nest || !contraction::write(*nest, function, analyses)) continue;
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
      again = changed = true;
      break;
    }
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
