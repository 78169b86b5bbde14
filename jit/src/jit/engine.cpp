// From a function to code in memory. LLVM's linker writes it to pages that are then made executable and no
// longer writable.
#include "jit/engine.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SHA256.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "jit/build_id.h"
#include "jit/cache.h"
#include "jit/codegen.h"
#include "jit/names.h"
#include "jit/pipeline.h"
#include "jit/translate.h"
#include "jit/vector_math.h"

namespace halyard::jit {

namespace {

namespace orc = llvm::orc;

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

// The handle of compiled code.
struct Handle {
  orc::JITDylib* code;
  std::unique_ptr<GdbName> name;
};

// Of the process.
struct Counters {
  std::atomic<uint64_t> functions = 0;
  std::atomic<uint64_t> cached = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> nanoseconds = 0;
  std::atomic<uint64_t> object_bytes = 0;
} counters;

}  // namespace

void Engine::stats(halyard_jit_stats_t& stats) {
  stats.functions = counters.functions;
  stats.cached = counters.cached;
  stats.refused = counters.refused;
  stats.nanoseconds = counters.nanoseconds;
  stats.object_bytes = counters.object_bytes;
}

struct Engine::Parts {
  std::mutex mutex;  // of translation and optimization; the linker has its own
  std::unique_ptr<llvm::LLVMTargetMachine> machine;
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<orc::LLJIT> jit;
  std::map<const void*, orc::JITDylib*> hosts;  // symbols of each host, by its put_ref
  orc::JITDylib* math = nullptr;                // vector functions; made when first used
  uint64_t count = 0;
  std::string build;  // of this library; empty: not known

  Digest key_of(const llvm::Module& module) const;
  std::string translate_into(const halyard_jit_function_t& function, llvm::Module& module);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> make_object(llvm::Module& module);
  llvm::Expected<orc::JITDylib*> symbols_of(const halyard_jit_function_t& function);
  llvm::Expected<orc::JITDylib*> math_symbols();
  llvm::Error link(const halyard_jit_function_t& function, std::unique_ptr<llvm::MemoryBuffer> object,
                   halyard_jit_code_t& code);
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
    // As the linker wants it.
    target->setRelocationModel(llvm::Reloc::PIC_);
    target->setCodeModel(llvm::CodeModel::Small);
    auto machine = target->createTargetMachine();
    if (!machine) return {nullptr, text_of(machine.takeError())};
    auto jit = orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
    if (!jit) return {nullptr, text_of(jit.takeError())};
    auto* const parts = new Parts;
    // Every target that LLVM generates code for is one.
    parts->machine.reset(static_cast<llvm::LLVMTargetMachine*>(machine->release()));
    parts->pipeline = std::make_unique<Pipeline>(*parts->machine);
    parts->jit = std::move(*jit);
    parts->build = build_id();
    return {new Engine(parts), {}};
  }());  // not destroyed at exit
  if (!made.engine) reason = made.reason;
  return made.engine;
}

// The symbols that code uses from this host. Each library that contains the VM is a host of its own.
llvm::Expected<orc::JITDylib*> Engine::Parts::symbols_of(const halyard_jit_function_t& function) {
  orc::JITDylib*& found = hosts[reinterpret_cast<const void*>(function.put_ref)];
  if (found) return found;
  orc::JITDylib& made = jit->getExecutionSession().createBareJITDylib("host " + std::to_string(hosts.size()));
  orc::SymbolMap symbols;
  const auto add = [&](const std::string& name, const void* address) {
    if (address)
      symbols[jit->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address),
                                             llvm::JITSymbolFlags::Exported};
  };
  for (size_t op = 0; op < function.helper_count; ++op) add(helper_name(op), function.helpers[op]);
  add(kPutRef, reinterpret_cast<const void*>(function.put_ref));
  add(kBufferType, function.layout->buffer_type);
  add(kListType, function.layout->list_type);
  if (llvm::Error error = made.define(orc::absoluteSymbols(std::move(symbols)))) return error;
  return found = &made;
}

llvm::Expected<orc::JITDylib*> Engine::Parts::math_symbols() {
  if (math) return math;
  orc::JITDylib& made = jit->getExecutionSession().createBareJITDylib("vector math");
  orc::SymbolMap symbols;
  for (const VectorFunction& function : vector_functions())
    symbols[jit->mangleAndIntern(function.name)] = {orc::ExecutorAddr::fromPtr(function.address),
                                                    llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = made.define(orc::absoluteSymbols(std::move(symbols)))) return error;
  return math = &made;
}

llvm::Error Engine::Parts::link(const halyard_jit_function_t& function,
                                std::unique_ptr<llvm::MemoryBuffer> object, halyard_jit_code_t& code) {
  auto host = symbols_of(function);
  if (!host) return host.takeError();
  auto made = jit->createJITDylib(std::to_string(count++));
  if (!made) return made.takeError();
  made->addToLinkOrder(**host);
  if (function.fast_math) {
    auto functions = math_symbols();
    if (!functions) return functions.takeError();
    made->addToLinkOrder(**functions);
  }
  llvm::Error error = jit->addObjectFile(*made, std::move(object));
  if (!error) {
    auto symbol = jit->lookup(*made, kFunction);
    if (symbol) {
      code.run = symbol->toPtr<halyard_jit_run_fn>();
      code.handle = new Handle{&*made, nullptr};
      return llvm::Error::success();
    }
    error = symbol.takeError();
  }
  return llvm::joinErrors(std::move(error), jit->getExecutionSession().removeJITDylib(*made));
}

// A digest of everything the object depends on: the translated function, the processor, and this library.
Digest Engine::Parts::key_of(const llvm::Module& module) const {
  llvm::SmallVector<char, 0> bitcode;
  llvm::raw_svector_ostream out(bitcode);
  llvm::WriteBitcodeToFile(module, out);
  llvm::SHA256 sha;
  sha.update(llvm::StringRef(bitcode.data(), bitcode.size()));
  sha.update(build);
  return sha.final();
}

// Why the function is not translated, else empty.
std::string Engine::Parts::translate_into(const halyard_jit_function_t& function, llvm::Module& module) {
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple().str());
  std::string reason = translate(function, module, machine->getTargetFeatureString());
  if (!reason.empty()) return reason;
  llvm::Function* const made = module.getFunction(kFunction);
  if (function.fast_math) made->addFnAttr("halyard-math", "fast");  // objects are found by all of this
  made->addFnAttr("target-cpu", machine->getTargetCPU());
  made->addFnAttr("target-features", machine->getTargetFeatureString());
  return {};
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> Engine::Parts::make_object(llvm::Module& module) {
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  pipeline->run(module);
#ifdef HALYARD_JIT_VERIFY
  if (llvm::verifyModule(module, &llvm::errs())) std::abort();
#endif
  return generate_code(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

bool Engine::compile(const halyard_jit_function_t& function, halyard_jit_code_t& code, std::string& reason) {
  const std::lock_guard lock(parts_->mutex);
  const auto begin = std::chrono::steady_clock::now();
  const bool made = make(function, code, reason);
  counters.nanoseconds +=
      static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  ++(made ? counters.functions : counters.refused);
  if (!made) return false;
  counters.cached += code.cached;
  counters.object_bytes += code.object_bytes;
  return true;
}

bool Engine::make(const halyard_jit_function_t& function, halyard_jit_code_t& code, std::string& reason) {
  llvm::LLVMContext context;
  llvm::Module module(function.name, context);
  reason = parts_->translate_into(function, module);
  if (!reason.empty()) return false;

  std::optional<Cache> cache;
  Digest key = {};
  std::unique_ptr<llvm::MemoryBuffer> object;
  if (function.cache && !parts_->build.empty()) {
    cache.emplace(function.cache);
    std::snprintf(code.cache_refusal, sizeof code.cache_refusal, "%s", cache->refusal().c_str());
    key = parts_->key_of(module);
    object = cache->find(key);
  }
  code.cached = object != nullptr;
  if (!object) {
    auto generated = parts_->make_object(module);
    if (!generated) {
      reason = text_of(generated.takeError());
      return false;
    }
    object = std::move(*generated);
    if (cache) cache->store(key, {object->getBufferStart(), object->getBufferSize()});
  }
  code.object_bytes = object->getBufferSize();
  const size_t size = function_size({object->getBufferStart(), object->getBufferSize()}, kFunction);
  if (llvm::Error error = parts_->link(function, std::move(object), code)) {
    reason = text_of(std::move(error));
    return false;
  }
  static_cast<Handle*>(code.handle)->name =
      announce(function.name, reinterpret_cast<uintptr_t>(code.run), size);
  return true;
}

bool Engine::explain(const halyard_jit_function_t& function, const halyard_jit_explanation_t& explanation,
                     std::string& reason) {
  const std::lock_guard lock(parts_->mutex);
  llvm::LLVMContext context;
  llvm::Module module(function.name, context);
  reason = parts_->translate_into(function, module);
  if (!reason.empty()) return false;
  parts_->pipeline->run(module);
  std::string representation;
  llvm::raw_string_ostream(representation) << module;
  auto assembly = generate_code(module, *parts_->machine, llvm::CodeGenFileType::AssemblyFile);
  if (!assembly) {
    reason = text_of(assembly.takeError());
    return false;
  }
  explanation.take_ir(explanation.user, representation.data(), representation.size());
  explanation.take_assembly(explanation.user, (*assembly)->getBufferStart(), (*assembly)->getBufferSize());
  return true;
}

void Engine::release(void* handle) {
  const std::unique_ptr<Handle> owned(static_cast<Handle*>(handle));
  if (owned->name) {
    const std::lock_guard lock(parts_->mutex);
    owned->name.reset();
  }
  llvm::consumeError(parts_->jit->getExecutionSession().removeJITDylib(*owned->code));
}

}  // namespace halyard::jit
