// Which passes run in which order, and how code gets into memory. LLVM's linker writes it to pages that are
// then made executable and no longer writable.
#include "jit/engine.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
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
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "jit/hoist.h"
#include "jit/translate.h"

namespace halyard::jit {

namespace {

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

llvm::FunctionPassManager passes() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::PromotePass());
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::ADCEPass());
  // Without tricks that join checks: one branch stays one check.
  passes.addPass(llvm::LoopSimplifyPass());
  passes.addPass(llvm::LCSSAPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopRotatePass()));
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
    loop.addPass(llvm::IndVarSimplifyPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loop), /*UseMemorySSA=*/true));
  };
  clean();
  move_out();
  passes.addPass(llvm::GVNPass());
  clean();
  move_out();
  passes.addPass(llvm::LoopVectorizePass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SLPVectorizerPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2)));
  clean();
  passes.addPass(llvm::ADCEPass());
  return passes;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager groups;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(groups);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, groups, modules);
  llvm::FunctionPassManager manager = passes();
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) manager.run(function, functions);
}

struct Handle {
  llvm::orc::ResourceTrackerSP tracker;
};

}  // namespace

struct Engine::Parts {
  std::mutex mutex;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  uint64_t count = 0;
};

Engine* Engine::get(std::string& reason) {
  struct Made {
    Engine* engine = nullptr;
    std::string reason;
  };
  static const Made& made = *new Made([]() -> Made {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto target = llvm::orc::JITTargetMachineBuilder::detectHost();
    if (!target) return {nullptr, text_of(target.takeError())};
    target->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
    target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
    auto machine = target->createTargetMachine();
    if (!machine) return {nullptr, text_of(machine.takeError())};
    auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
    if (!jit) return {nullptr, text_of(jit.takeError())};
    auto* const parts = new Parts;
    parts->machine = std::move(*machine);
    parts->jit = std::move(*jit);
    return {new Engine(parts), {}};
  }());  // not destroyed at exit
  if (!made.engine) reason = made.reason;
  return made.engine;
}

bool Engine::compile(const halyard_jit_function_t& function, halyard_jit_code_t& code, std::string& reason) {
  const std::lock_guard lock(parts_->mutex);
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = std::make_unique<llvm::Module>(function.name, *context);
  module->setDataLayout(parts_->jit->getDataLayout());
  module->setTargetTriple(parts_->machine->getTargetTriple().str());
  const std::string name = "halyard_jit_" + std::to_string(parts_->count++);
  reason = translate(function, *module, name);
  if (!reason.empty()) return false;
  llvm::Function* const made = module->getFunction(name);
  made->addFnAttr("target-cpu", parts_->machine->getTargetCPU());
  made->addFnAttr("target-features", parts_->machine->getTargetFeatureString());
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(*module, &llvm::errs())) std::abort();
#endif
  optimize(*module, *parts_->machine);
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(*module, &llvm::errs())) std::abort();
#endif
  auto tracker = parts_->jit->getMainJITDylib().createResourceTracker();
  if (llvm::Error error = parts_->jit->addIRModule(
          tracker, llvm::orc::ThreadSafeModule(std::move(module), std::move(context)))) {
    reason = text_of(std::move(error));
    return false;
  }
  auto symbol = parts_->jit->lookup(name);
  if (!symbol) {
    reason = text_of(symbol.takeError());
    llvm::consumeError(tracker->remove());
    return false;
  }
  code.run = symbol->toPtr<halyard_jit_run_fn>();
  code.handle = new Handle{std::move(tracker)};
  return true;
}

void Engine::release(void* handle) {
  const std::lock_guard lock(parts_->mutex);
  const std::unique_ptr<Handle> owned(static_cast<Handle*>(handle));
  llvm::consumeError(owned->tracker->remove());
}

}  // namespace halyard::jit
