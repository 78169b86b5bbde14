// One contraction after the other, since each changes the loops.
#include "codegen/contraction/pass.h"

#include <llvm/Analysis/OptimizationRemarkEmitter.h>

#include "codegen/contraction/recognize.h"
#include "codegen/contraction/write.h"
#include "codegen/loops.h"
#include "codegen/translate.h"

namespace halyard::jit {

namespace {

// Whether the innermost loop in another one adds to memory, so that it could be a contraction.
bool is_sum(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
  if (!loop.getParentLoop()) return false;
  for (llvm::BasicBlock* const block : loop.blocks())
    for (llvm::Instruction& instruction : *block)
      if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
        if (evolution.isLoopInvariant(evolution.getSCEV(store->getPointerOperand()), &loop)) return true;
  return false;
}

template <typename Remark>
void say(llvm::OptimizationRemarkEmitter& remarks, const char* name, const llvm::BasicBlock* block,
         llvm::StringRef text) {
  remarks.emit([&] {
    Remark remark(kContraction, name, {}, block);
    remark << text;
    return remark;
  });
}

// Writes the nest and says so. Returns false if it is left as it is.
bool write_nest(const contraction::Nest& nest, const char* remark, llvm::Function& function,
                llvm::FunctionAnalysisManager& analyses, llvm::OptimizationRemarkEmitter& remarks) {
  llvm::BasicBlock* const before = nest.before();
  const std::optional<std::string> decided = contraction::write(nest, function, analyses);
  if (decided) say<llvm::OptimizationRemark>(remarks, remark, before, *decided);
  return decided.has_value();
}

// Tiles one contraction, if there is one. Sets `changed` if the function is another one afterwards.
bool tile_one(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
              llvm::OptimizationRemarkEmitter& remarks, bool& changed) {
  for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    if (!loop->isInnermost() || is_left_as_it_is(*loop)) continue;
    llvm::BasicBlock* const header = loop->getHeader();
    contraction::Recognizer recognizer(function, analyses);
    const std::optional<contraction::Nest> nest = recognizer.find(loop);
    changed |= recognizer.changed();
    if (!nest) {
      if (is_sum(*loop, analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)))
        say<llvm::OptimizationRemarkMissed>(remarks, "NotTiled", header, recognizer.reason());
      continue;
    }
    if (write_nest(*nest, "Tiled", function, analyses, remarks)) return true;
  }
  return false;
}

// Lets threads share one nest without terms, if there is one.
bool share_one(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
               llvm::OptimizationRemarkEmitter& remarks, bool& changed) {
  if (function.getName() != kFunction) return false;  // a part that threads share already
  for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    if (!loop->isInnermost() || is_left_as_it_is(*loop)) continue;
    contraction::Recognizer recognizer(function, analyses);
    const std::optional<contraction::Nest> nest = recognizer.find_elementwise(loop);
    changed |= recognizer.changed();
    if (nest && write_nest(*nest, "Shared", function, analyses, remarks)) return true;
  }
  return false;
}

// Writes one chain, if there is one.
bool join_one(llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
              llvm::OptimizationRemarkEmitter& remarks, bool& changed) {
  for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder()) {
    contraction::Recognizer recognizer(function, analyses);
    const std::optional<contraction::Chain> chain = recognizer.find_chain(loop);
    changed |= recognizer.changed();
    if (!chain) continue;
    llvm::BasicBlock* const before = loop->getLoopPreheader();
    say<llvm::OptimizationRemark>(
        remarks, "Joined", before,
        contraction::write(*chain, analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)));
    return true;
  }
  return false;
}

}  // namespace

llvm::PreservedAnalyses TileContractions::run(llvm::Function& function,
                                              llvm::FunctionAnalysisManager& analyses) {
  bool changed = false;
  llvm::OptimizationRemarkEmitter remarks(&function);
  for (const auto step : {tile_one, join_one, share_one}) {
    while (step(function, analyses, remarks, changed)) {
      analyses.invalidate(function, llvm::PreservedAnalyses::none());
      changed = true;
    }
  }
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace halyard::jit
