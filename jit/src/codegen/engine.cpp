// Compiles a function to an image, with an LLVM instance that no other thread uses meanwhile.
#include "codegen/engine.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>

#include "codegen/contraction/pass.h"
#include "codegen/flatten.h"
#include "codegen/object.h"
#include "codegen/pipeline.h"
#include "codegen/translate.h"

namespace halyard::jit {

namespace {

namespace orc = llvm::orc;

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

// Collects what the passes of this library say of each nest, a comment a line.
struct Remarks final : llvm::DiagnosticHandler {
  explicit Remarks(std::string& lines) : lines(lines) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    const auto* const remark = llvm::dyn_cast<llvm::DiagnosticInfoOptimizationBase>(&info);
    if (remark && remark->getPassName() == kContraction)
      lines += (remark->isPassed() ? "; contraction: " : "; no contraction: ") + remark->getMsg() + "\n";
    return remark != nullptr;
  }
  bool isAnyRemarkEnabled() const override { return true; }
  bool isPassedOptRemarkEnabled(llvm::StringRef pass) const override { return pass == kContraction; }
  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override { return pass == kContraction; }

  std::string& lines;
};

}  // namespace

// The LLVM instance that compiles one function at a time.
struct Engine::Parts {
  std::unique_ptr<llvm::LLVMTargetMachine> machine;
  std::unique_ptr<Pipeline> pipeline;

  static llvm::Expected<std::unique_ptr<Parts>> make();
  void translate_into(const halyard_jit_function_t& function, llvm::Module& module);
  llvm::Expected<Image> make_image(llvm::Module& module);
};

llvm::Expected<std::unique_ptr<Engine::Parts>> Engine::Parts::make() {
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target) return target.takeError();
  target->setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  target->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // An image may be placed at any address, but is contiguous.
  target->setRelocationModel(llvm::Reloc::PIC_);
  target->setCodeModel(llvm::CodeModel::Small);
  auto machine = target->createTargetMachine();
  if (!machine) return machine.takeError();
  auto parts = std::make_unique<Parts>();
  // Every target for which LLVM generates code is an LLVMTargetMachine.
  parts->machine.reset(static_cast<llvm::LLVMTargetMachine*>(machine->release()));
  parts->pipeline = std::make_unique<Pipeline>(*parts->machine);
  return parts;
}

Engine::Engine() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
}

Engine& Engine::get() {
  static Engine& engine = *new Engine;  // not destroyed at exit
  return engine;
}

// Borrows an instance for the compilation of one function.
class Engine::Borrowed {
 public:
  Borrowed(Engine& engine, std::string& reason) : engine_(engine) {
    {
      const std::lock_guard lock(engine.mutex_);
      if (!engine.idle_.empty()) {
        parts_ = std::move(engine.idle_.back());
        engine.idle_.pop_back();
        return;
      }
    }
    auto made = Parts::make();
    if (!made) {
      reason = text_of(made.takeError());
      return;
    }
    const std::lock_guard lock(engine.mutex_);
    engine.idle_.reserve(++engine.made_);  // so that returning an instance cannot fail
    parts_ = std::move(*made);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() {
    if (!parts_) return;
    const std::lock_guard lock(engine_.mutex_);
    engine_.idle_.push_back(std::move(parts_));
  }
  explicit operator bool() const { return parts_ != nullptr; }
  Parts* operator->() const { return parts_.get(); }

 private:
  Engine& engine_;
  std::unique_ptr<Parts> parts_;
};

void Engine::Parts::translate_into(const halyard_jit_function_t& function, llvm::Module& module) {
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  translate(function, module, machine->getTargetFeatureString());
  llvm::Function* const made = module.getFunction(kFunction);
  // LLVM prefers 256 bits on most processors with AVX-512, because early ones lower their clock for more.
  made->addFnAttr("prefer-vector-width", "512");
  made->addFnAttr("target-cpu", machine->getTargetCPU());
  made->addFnAttr("target-features", machine->getTargetFeatureString());
}

llvm::Expected<Image> Engine::Parts::make_image(llvm::Module& module) {
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  if (llvm::Error error = pipeline->run(module)) return error;
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  auto object = generate_object(module, *machine, llvm::CodeGenFileType::ObjectFile);
  if (!object) return object.takeError();
  return flatten(**object, kFunction);
}

bool Engine::generate(const halyard_jit_function_t& function, std::string& image, std::string& reason) {
  const Borrowed parts(*this, reason);
  if (!parts) return false;
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);  // naming the values of copied blocks takes as long as copying them
  llvm::Module module(function.name, context);
  parts->translate_into(function, module);
  auto made = parts->make_image(module);
  if (!made) {
    reason = text_of(made.takeError());
    return false;
  }
  image = made->to_bytes();
  return true;
}

bool Engine::explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
                     std::string& reason) {
  const Borrowed parts(*this, reason);
  if (!parts) return false;
  std::string representation;
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<Remarks>(representation));
  llvm::Module module(function.name, context);
  parts->translate_into(function, module);
  if (llvm::Error error = parts->pipeline->run(module)) {
    reason = text_of(std::move(error));
    return false;
  }
  llvm::raw_string_ostream(representation) << module;
  auto assembly = generate_object(module, *parts->machine, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly) {
    reason = text_of(assembly.takeError());
    return false;
  }
  explanation.take_ir(explanation.user, representation.data(), representation.size());
  explanation.take_assembly(explanation.user, (*assembly)->getBufferStart(), (*assembly)->getBufferSize());
  return true;
}

}  // namespace halyard::jit
