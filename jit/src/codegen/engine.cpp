// From a function to an image, one at a time.
#include "codegen/engine.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>

#include "codegen/flatten.h"
#include "codegen/object.h"
#include "codegen/pipeline.h"
#include "codegen/translate.h"

namespace halyard::jit {

namespace {

namespace orc = llvm::orc;

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

}  // namespace

struct Engine::Parts {
  std::mutex mutex;
  std::unique_ptr<llvm::LLVMTargetMachine> machine;
  std::unique_ptr<Pipeline> pipeline;

  void translate_into(const halyard_jit_function_t& function, llvm::Module& module);
  llvm::Expected<Image> make_image(llvm::Module& module);
};

Engine* Engine::get(std::string& reason) {
  struct Made {
    Engine* engine = nullptr;
    std::string reason;
  };
  static const Made& made = *new Made([]() -> Made {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto target = orc::JITTargetMachineBuilder::detectHost();
    if (!target) return {nullptr, text_of(target.takeError())};
    target->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
    target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
    // An image may lie anywhere, but is in one piece.
    target->setRelocationModel(llvm::Reloc::PIC_);
    target->setCodeModel(llvm::CodeModel::Small);
    auto machine = target->createTargetMachine();
    if (!machine) return {nullptr, text_of(machine.takeError())};
    auto* const parts = new Parts;
    // Every target that LLVM generates code for is one.
    parts->machine.reset(static_cast<llvm::LLVMTargetMachine*>(machine->release()));
    parts->pipeline = std::make_unique<Pipeline>(*parts->machine);
    return {new Engine(parts), {}};
  }());  // not destroyed at exit
  if (!made.engine) reason = made.reason;
  return made.engine;
}

void Engine::Parts::translate_into(const halyard_jit_function_t& function, llvm::Module& module) {
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  translate(function, module, machine->getTargetFeatureString());
  llvm::Function* const made = module.getFunction(kFunction);
  made->addFnAttr("target-cpu", machine->getTargetCPU());
  made->addFnAttr("target-features", machine->getTargetFeatureString());
}

llvm::Expected<Image> Engine::Parts::make_image(llvm::Module& module) {
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  pipeline->run(module);
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  auto object = generate_object(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!object) return object.takeError();
  return flatten(**object, kFunction);
}

bool Engine::generate(const halyard_jit_function_t& function, std::string& image, std::string& reason) {
  const std::lock_guard lock(parts_->mutex);
  llvm::LLVMContext context;
  llvm::Module module(function.name, context);
  parts_->translate_into(function, module);
  auto made = parts_->make_image(module);
  if (!made) {
    reason = text_of(made.takeError());
    return false;
  }
  image = made->to_bytes();
  return true;
}

bool Engine::explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
                     std::string& reason) {
  const std::lock_guard lock(parts_->mutex);
  llvm::LLVMContext context;
  llvm::Module module(function.name, context);
  parts_->translate_into(function, module);
  parts_->pipeline->run(module);
  std::string representation;
  llvm::raw_string_ostream(representation) << module;
  auto assembly = generate_object(module, *parts_->machine, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly) {
    reason = text_of(assembly.takeError());
    return false;
  }
  explanation.take_ir(explanation.user, representation.data(), representation.size());
  explanation.take_assembly(explanation.user, (*assembly)->getBufferStart(), (*assembly)->getBufferSize());
  return true;
}

}  // namespace halyard::jit
