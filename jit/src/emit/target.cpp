#include "emit/target.h"

#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/TargetParser/X86TargetParser.h>

namespace halyard::jit {

namespace {

void initialize_targets() {
  static const bool done = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
    return true;
  }();
  static_cast<void>(done);
}

// All features by name, because passes of this library look for names.
std::string all_features(const llvm::Triple& triple, llvm::StringRef processor, llvm::StringRef features) {
  std::string all;
  if (triple.isX86()) {
    llvm::SmallVector<llvm::StringRef, 64> of_processor;
    llvm::X86::getFeaturesForCPU(processor, of_processor, /*NeedPlus=*/true);
    for (const llvm::StringRef each : of_processor) all += each.str() + ",";
  }
  if (!features.empty()) all += features.str() + ",";
  if (!all.empty()) all.pop_back();
  return all;
}

}  // namespace

llvm::Expected<std::unique_ptr<llvm::LLVMTargetMachine>> make_target(llvm::StringRef triple,
                                                                     llvm::StringRef processor,
                                                                     llvm::StringRef features) {
  initialize_targets();
  std::string why;
  const llvm::Target* const target = llvm::TargetRegistry::lookupTarget(triple.str(), why);
  if (!target) return llvm::createStringError(llvm::inconvertibleErrorCode(), why.c_str());
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.FunctionSections = true;  // so that the linker leaves out what nothing uses
  const llvm::Triple parsed(triple);
  if (parsed.isRISCV64()) options.MCOptions.ABIName = "lp64d";
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, processor, all_features(parsed, processor, features), options,
                                  llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   "LLVM cannot generate code for this processor");
  // Every target for which LLVM generates code is an LLVMTargetMachine.
  return std::unique_ptr<llvm::LLVMTargetMachine>(static_cast<llvm::LLVMTargetMachine*>(machine.release()));
}

void set_target(llvm::Module& module, const llvm::LLVMTargetMachine& machine) {
  module.setDataLayout(machine.createDataLayout());
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setPICLevel(llvm::PICLevel::SmallPIC);
  if (machine.getTargetTriple().isRISCV64())
    module.addModuleFlag(llvm::Module::Error, "target-abi",
                         llvm::MDString::get(module.getContext(), "lp64d"));
}

void set_processor(llvm::Function& function, const llvm::LLVMTargetMachine& machine) {
  function.addFnAttr("prefer-vector-width", "512");  // as in codegen/engine.cpp
  function.addFnAttr("target-cpu", machine.getTargetCPU());
  function.addFnAttr("target-features", machine.getTargetFeatureString());
  // LLVM orders the instructions of this level for a processor of 2017. The order for a later one is the
  // faster one on others, too: products of many sums in registers take 0.87 of the time on a Zen 5.
  if (machine.getTargetCPU() == "x86-64-v4") function.addFnAttr("tune-cpu", "sapphirerapids");
}

}  // namespace halyard::jit
