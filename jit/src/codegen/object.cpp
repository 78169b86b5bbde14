// Runs LLVM's code generation passes for this processor, except for one.
#include "codegen/object.h"

#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Scalar.h>

namespace halyard::jit {

namespace {

// Omits loop strength reduction. It took a third of the time and made no kernel faster, because addresses in
// kernels are already a base and an index.
class Passes : public llvm::legacy::PassManager {
 public:
  void add(llvm::Pass* pass) override {
    const std::unique_ptr<llvm::Pass> left_out(llvm::createLoopStrengthReducePass());
    if (pass->getPassID() == left_out->getPassID()) {
      delete pass;
    } else {
      llvm::legacy::PassManager::add(pass);
    }
  }
};

}  // namespace

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> generate_object(llvm::Module& module,
                                                                    llvm::LLVMTargetMachine& machine,
                                                                    llvm::CodeGenFileType type) {
  const auto refused = [] {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "LLVM cannot generate code for this processor");
  };
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  Passes passes;
  // Owned by the pass manager.
  llvm::TargetPassConfig* const config = machine.createPassConfig(passes);
  auto* const information = new llvm::MachineModuleInfoWrapperPass(&machine);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(information);
  if (config->addISelPasses()) return refused();
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, out, nullptr, type, information->getMMI().getContext())) return refused();
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), module.getModuleIdentifier(),
                                                         /*RequiresNullTerminator=*/false);
}

}  // namespace halyard::jit
