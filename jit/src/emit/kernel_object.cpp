#include "emit/kernel_object.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Verifier.h>

#include "codegen/object.h"
#include "codegen/translate.h"
#include "emit/kernel_entry.h"
#include "emit/kernel_objects.h"
#include "emit/target.h"
#include "front/plain_function.h"
#include "shared/symbols.h"

namespace halyard::jit {

namespace {

llvm::Error not_compiled(const llvm::Twine& why) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), why);
}

// Gives a function to which compiled code refers its body: the entry function keeps no references, so a
// register simply changes.
void define_put_ref(llvm::Module& module) {
  llvm::Function* const put_ref = module.getFunction(kPutRef);
  if (!put_ref) return;
  put_ref->setLinkage(llvm::GlobalValue::InternalLinkage);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", put_ref));
  b.CreateStore(put_ref->getArg(1), put_ref->getArg(0));
  b.CreateRetVoid();
}

// cast.f32.ui64, as vm/decode/arithmetic.h has it: negative values wrap; values too large give 2^63, or 0
// from 2^64 on.
void define_to_u64(llvm::Module& module) {
  llvm::Function* const cast = module.getFunction(helper_name(static_cast<size_t>(vm::Op::cast_f32_ui64)));
  if (!cast) return;
  cast->setLinkage(llvm::GlobalValue::InternalLinkage);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", cast));
  llvm::Value* const away = b.CreateUnaryIntrinsic(llvm::Intrinsic::round, cast->getArg(0));
  const auto number = [&](double value) { return llvm::ConstantFP::get(b.getFloatTy(), value); };
  constexpr double kLimit = 9223372036854775808.0;
  llvm::Value* const top = b.getInt64(uint64_t{1} << 63);
  const auto converted = [&](llvm::Value* value, llvm::Value* fits) {
    return b.CreateFPToSI(b.CreateSelect(fits, value, number(0)), b.getInt64Ty());
  };
  llvm::Value* const small =
      b.CreateAnd(b.CreateFCmpOGE(away, number(-kLimit)), b.CreateFCmpOLT(away, number(kLimit)));
  llvm::Value* const of_small = b.CreateSelect(small, converted(away, small), top);
  llvm::Value* const rest = b.CreateFSub(away, number(kLimit));
  llvm::Value* const fits = b.CreateFCmpOLT(rest, number(kLimit));
  llvm::Value* const of_large = b.CreateSelect(fits, b.CreateXor(converted(rest, fits), top), b.getInt64(0));
  b.CreateRet(b.CreateSelect(b.CreateFCmpOGE(away, number(kLimit)), of_large, of_small));
}

// Types are known by the addresses of two bytes.
void define_types(llvm::Module& module) {
  for (const char* const name : {kBufferType, kListType}) {
    llvm::GlobalVariable* const type = module.getNamedGlobal(name);
    if (!type) continue;
    type->setInitializer(llvm::ConstantInt::get(type->getValueType(), name == kListType ? 1 : 0));
    type->setConstant(true);
    type->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

// The name of the instruction for which compiled code calls the C library.
std::string called_instruction(llvm::StringRef symbol) {
  size_t op = 0;
  if (!symbol.consume_front(kHelper) || symbol.getAsInteger(10, op) || op >= vm::kOpCount)
    return symbol.str();
  return std::string(vm::info(static_cast<vm::Op>(op)).mnemonic());
}

llvm::Error check_calls(const llvm::Module& module, const std::set<std::string>& microkernels) {
  for (const llvm::Function& function : module)
    if (function.isDeclaration() && !function.isIntrinsic() && !function.use_empty() &&
        !microkernels.contains(function.getName().str()))
      return not_compiled(
          called_instruction(function.getName()) +
          ": its bits are those of the C library where the kernel runs, which code of the module "
          "cannot call");
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<KernelObject> make_kernel_object(const halyard_emit_request_t& request,
                                                const halyard_emit_kernel_t& kernel,
                                                const std::string& symbol, llvm::LLVMTargetMachine& machine,
                                                Pipeline& pipeline) {
  halyard_jit_function_t function = kernel.function;
  function.layout = &kernel_object_layout();
  const PlainFunction plain(function);
  if (const std::string refusal = plain.refusal(); !refusal.empty()) return not_compiled(refusal);

  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  llvm::Module module(symbol, context);
  set_target(module, machine);
  translate(plain.get(), module, machine.getTargetFeatureString());
  llvm::Function* const run = module.getFunction(kFunction);
  set_processor(*run, machine);
  if (llvm::Error error = pipeline.run(module)) return error;

  KernelEntry entry(request, kernel, plain.get(), *run);
  if (llvm::Error error = entry.write(symbol)) return error;
  define_put_ref(module);
  define_to_u64(module);
  define_types(module);
  if (llvm::Error error = check_calls(module, entry.microkernels())) return error;
  for (llvm::Function& each : module) {
    if (each.isDeclaration()) continue;
    set_processor(each, machine);
    if (&each != entry.function()) each.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  for (llvm::GlobalVariable& each : module.globals())
    if (!each.isDeclaration()) {
      each.setVisibility(llvm::GlobalValue::DefaultVisibility);
      each.setLinkage(llvm::GlobalValue::InternalLinkage);
    }
  std::string broken;
  llvm::raw_string_ostream text(broken);
  if (llvm::verifyModule(module, &text)) return not_compiled("LLVM refuses its own code: " + broken);
  auto object = generate_object(module, machine, llvm::CodeGenFileType::ObjectFile);
  if (!object) return object.takeError();
  return KernelObject{std::move(*object), entry.local_memory_pages(), entry.microkernels()};
}

}  // namespace halyard::jit
