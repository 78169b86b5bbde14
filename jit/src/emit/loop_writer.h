// LoopWriter: functions of loops in LLVM's representation, for code that is not made from bytecode.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>

namespace halyard::jit {

class LoopWriter {
 public:
  using Value = llvm::Value;
  using Values = llvm::SmallVector<Value*, 32>;

  explicit LoopWriter(llvm::Module& module) : module_(module), b(module.getContext()) {}

  // Begins a function. It is visible to other objects of the library if `is_shared`.
  llvm::Function* begin(llvm::StringRef name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters,
                        bool is_shared);
  llvm::Function* function() const { return function_; }
  Value* argument(unsigned index) { return function_->getArg(index); }

  // Runs `body` for the numbers from 0 on, of 64 bits, below `count`.
  void for_each(Value* count, const std::function<void(Value*)>& body);
  // The same with values that each iteration gets and replaces. Returns the last ones.
  Values for_each(Value* count, Values values, const std::function<Values(Value*, Values)>& body);
  void if_(Value* condition, const std::function<void()>& then);
  void if_(Value* condition, const std::function<void()>& then, const std::function<void()>& otherwise);
  // Ends the function with the code unless the condition holds.
  void return_unless(Value* condition, int32_t code);

  Value* i64(uint64_t number) { return b.getInt64(number); }
  Value* sum(Value* x, Value* y) { return b.CreateAdd(x, y); }
  Value* product(Value* x, Value* y) { return b.CreateMul(x, y); }
  Value* min(Value* x, Value* y) { return b.CreateSelect(b.CreateICmpULT(x, y), x, y); }
  // x - y, but 0 if y is larger.
  Value* rest(Value* x, Value* y) { return b.CreateSelect(b.CreateICmpULT(y, x), b.CreateSub(x, y), i64(0)); }
  // `offset` bytes after `base`.
  Value* at(Value* base, Value* offset) { return b.CreateGEP(b.getInt8Ty(), base, offset); }
  // The operands of kernels need no alignment.
  Value* load(llvm::Type* type, Value* address) { return b.CreateAlignedLoad(type, address, llvm::Align(1)); }
  void store(Value* value, Value* address) { b.CreateAlignedStore(value, address, llvm::Align(1)); }
  // Memory of the stack, in the first block.
  Value* room(uint64_t bytes);
  llvm::BasicBlock* block();

 private:
  llvm::Module& module_;
  llvm::Function* function_ = nullptr;

 public:
  llvm::IRBuilder<> b;
};

}  // namespace halyard::jit
