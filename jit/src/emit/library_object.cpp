// The layouts are those of 64-bit processors, which LLVM gives such structures.
#include "emit/library_object.h"

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace halyard::jit {

namespace {

using llvm::Constant;
using llvm::Value;

constexpr char kQuery[] = "iree_hal_executable_library_query";

class LibraryWriter {
 public:
  LibraryWriter(llvm::Module& module, std::span<const ExportedKernel> kernels)
      : module_(module), kernels_(kernels), b_(module.getContext()) {}

  void run(llvm::StringRef name) {
    std::vector<Constant*> functions;
    std::vector<Constant*> names;
    std::vector<Constant*> attributes_5;
    std::vector<Constant*> attributes_6;
    Constant* const zero = b_.getInt64(0);
    for (const ExportedKernel& kernel : kernels_) {
      llvm::Constant* const function = declared(kernel.symbol);
      functions.push_back(function);
      names.push_back(text(kernel.name));
      Constant* const pages = b_.getInt16(static_cast<uint16_t>(kernel.local_memory_pages));
      Constant* const constants = b_.getInt8(static_cast<uint8_t>(kernel.constant_count));
      Constant* const bindings = b_.getInt8(static_cast<uint8_t>(kernel.binding_count));
      attributes_5.push_back(record(
          {pages, constants, bindings, b_.getInt32(0), zero, zero, zero, zero, zero, zero, zero, zero}));
      attributes_6.push_back(record({zero, pages, constants, bindings, b_.getInt32(0), b_.getInt32(0),
                                     b_.getInt16(0), b_.getInt16(0), zero, zero, zero, zero, zero}));
    }
    Constant* const count = b_.getInt32(static_cast<uint32_t>(kernels_.size()));
    Constant* const function_table = array(functions);
    Constant* const name_table = array(names);
    Constant* const exports_5 =
        record({count, function_table, array(attributes_5), name_table, null(), null(), null()});
    Constant* const exports_6 = record({count, function_table, array(attributes_6), null(), null(),
                                        name_table, null(), null(), null(), null()});
    write_query(library(5, name, exports_5), library(6, name, exports_6));
    write_memory_functions();
  }

 private:
  Constant* null() { return llvm::ConstantPointerNull::get(b_.getPtrTy()); }
  Constant* record(llvm::ArrayRef<Constant*> fields) { return llvm::ConstantStruct::getAnon(fields); }
  Constant* data(Constant* value) {
    return new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                    value);
  }
  Constant* text(llvm::StringRef characters) {
    return data(llvm::ConstantDataArray::getString(module_.getContext(), characters));
  }
  Constant* array(const std::vector<Constant*>& items) {
    if (items.empty()) return null();
    return data(
        llvm::ConstantArray::get(llvm::ArrayType::get(items.front()->getType(), items.size()), items));
  }
  Constant* declared(const std::string& symbol) {
    llvm::PointerType* const pointer = b_.getPtrTy();
    auto* const function = llvm::cast<llvm::Function>(
        module_
            .getOrInsertFunction(symbol,
                                 llvm::FunctionType::get(b_.getInt32Ty(), {pointer, pointer, pointer}, false))
            .getCallee());
    function->setVisibility(llvm::GlobalValue::HiddenVisibility);
    function->setDSOLocal(true);
    return function;
  }

  Constant* library(uint32_t revision, llvm::StringRef name, Constant* exports) {
    Constant* const none = b_.getInt32(0);
    Constant* const header = data(record({b_.getInt32(revision), text(name), none, none}));
    return data(
        record({header, record({none, null()}), exports, record({none, none}), record({none, null()})}));
  }

  llvm::Function* function(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> arguments,
                           llvm::GlobalValue::VisibilityTypes visibility) {
    auto* const made = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false),
                                              llvm::GlobalValue::ExternalLinkage, name, module_);
    made->setVisibility(visibility);
    made->addFnAttr(llvm::Attribute::NoUnwind);
    b_.SetInsertPoint(block(made));
    return made;
  }
  llvm::BasicBlock* block(llvm::Function* of) {
    return llvm::BasicBlock::Create(module_.getContext(), "", of);
  }

  void write_query(Constant* of_5, Constant* of_6) {
    llvm::Function* const query = function(kQuery, b_.getPtrTy(), {b_.getInt32Ty(), b_.getPtrTy()},
                                           llvm::GlobalValue::DefaultVisibility);
    Value* const revision = query->getArg(0);
    Value* const older = b_.CreateSelect(b_.CreateICmpEQ(revision, b_.getInt32(5)), of_5, null());
    b_.CreateRet(b_.CreateSelect(b_.CreateICmpEQ(revision, b_.getInt32(6)), of_6, older));
  }

  // A loop over the bytes. `backward`: from the last one on.
  void for_bytes(llvm::Function* in, Value* count, bool backward, auto&& body) {
    llvm::BasicBlock* const before = b_.GetInsertBlock();
    llvm::BasicBlock* const loop = block(in);
    llvm::BasicBlock* const done = block(in);
    b_.CreateCondBr(b_.CreateIsNull(count), done, loop);
    b_.SetInsertPoint(loop);
    llvm::PHINode* const at = b_.CreatePHI(b_.getInt64Ty(), 2);
    Value* const next = b_.CreateAdd(at, b_.getInt64(1));
    at->addIncoming(b_.getInt64(0), before);
    at->addIncoming(next, loop);
    body(backward ? b_.CreateSub(b_.CreateSub(count, b_.getInt64(1)), at) : at);
    b_.CreateCondBr(b_.CreateICmpULT(next, count), loop, done);
    b_.SetInsertPoint(done);
  }

  // Compiled kernels call them for a few bytes, if at all.
  void write_memory_functions() {
    llvm::Type* const byte = b_.getInt8Ty();
    llvm::Type* const pointer = b_.getPtrTy();
    const auto at = [&](Value* base, Value* index) { return b_.CreateGEP(byte, base, index); };
    for (const llvm::StringRef name : {"memcpy", "memmove"}) {
      llvm::Function* const copy =
          function(name, pointer, {pointer, pointer, b_.getInt64Ty()}, llvm::GlobalValue::HiddenVisibility);
      Value* const to = copy->getArg(0);
      Value* const from = copy->getArg(1);
      const auto move = [&](Value* index) {
        b_.CreateStore(b_.CreateLoad(byte, at(from, index)), at(to, index));
      };
      llvm::BasicBlock* const forward = block(copy);
      llvm::BasicBlock* const backward = block(copy);
      b_.CreateCondBr(b_.CreateICmpULT(to, from), forward, backward);
      for (llvm::BasicBlock* const way : {forward, backward}) {
        b_.SetInsertPoint(way);
        for_bytes(copy, copy->getArg(2), way == backward, move);
        b_.CreateRet(to);
      }
    }
    llvm::Function* const set = function("memset", pointer, {pointer, b_.getInt32Ty(), b_.getInt64Ty()},
                                         llvm::GlobalValue::HiddenVisibility);
    Value* const value = b_.CreateTrunc(set->getArg(1), byte);
    for_bytes(set, set->getArg(2), false,
              [&](Value* index) { b_.CreateStore(value, at(set->getArg(0), index)); });
    b_.CreateRet(set->getArg(0));
  }

  llvm::Module& module_;
  const std::span<const ExportedKernel> kernels_;
  llvm::IRBuilder<> b_;
};

}  // namespace

void write_library(llvm::Module& module, llvm::StringRef name, std::span<const ExportedKernel> kernels) {
  LibraryWriter(module, kernels).run(name);
}

}  // namespace halyard::jit
