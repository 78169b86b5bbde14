#include "emit/loop_writer.h"

namespace halyard::jit {

llvm::Function* LoopWriter::begin(llvm::StringRef name, llvm::Type* result,
                                  llvm::ArrayRef<llvm::Type*> parameters, bool is_shared) {
  function_ = llvm::Function::Create(
      llvm::FunctionType::get(result, parameters, false),
      is_shared ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, name, module_);
  if (is_shared) function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function_->setDSOLocal(true);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  b.SetInsertPoint(block());
  return function_;
}

llvm::BasicBlock* LoopWriter::block() {
  return llvm::BasicBlock::Create(module_.getContext(), "", function_);
}

void LoopWriter::for_each(Value* count, const std::function<void(Value*)>& body) {
  for_each(count, {}, [&](Value* index, Values) {
    body(index);
    return Values();
  });
}

LoopWriter::Values LoopWriter::for_each(Value* count, Values values,
                                        const std::function<Values(Value*, Values)>& body) {
  llvm::BasicBlock* const before = b.GetInsertBlock();
  llvm::BasicBlock* const head = block();
  llvm::BasicBlock* const inside = block();
  llvm::BasicBlock* const after = block();
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* const index = b.CreatePHI(b.getInt64Ty(), 2);
  index->addIncoming(i64(0), before);
  llvm::SmallVector<llvm::PHINode*, 32> carried;
  for (Value* const value : values) {
    carried.push_back(b.CreatePHI(value->getType(), 2));
    carried.back()->addIncoming(value, before);
  }
  b.CreateCondBr(b.CreateICmpULT(index, count), inside, after);
  b.SetInsertPoint(inside);
  const Values next = body(index, Values(carried.begin(), carried.end()));
  Value* const next_index = b.CreateNUWAdd(index, i64(1));
  index->addIncoming(next_index, b.GetInsertBlock());
  for (size_t i = 0; i < carried.size(); ++i) carried[i]->addIncoming(next[i], b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return Values(carried.begin(), carried.end());
}

void LoopWriter::if_(Value* condition, const std::function<void()>& then) {
  llvm::BasicBlock* const inside = block();
  llvm::BasicBlock* const after = block();
  b.CreateCondBr(condition, inside, after);
  b.SetInsertPoint(inside);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void LoopWriter::if_(Value* condition, const std::function<void()>& then,
                     const std::function<void()>& otherwise) {
  llvm::BasicBlock* const yes = block();
  llvm::BasicBlock* const no = block();
  llvm::BasicBlock* const after = block();
  b.CreateCondBr(condition, yes, no);
  b.SetInsertPoint(yes);
  then();
  b.CreateBr(after);
  b.SetInsertPoint(no);
  otherwise();
  b.CreateBr(after);
  b.SetInsertPoint(after);
}

void LoopWriter::return_unless(Value* condition, int32_t code) {
  llvm::BasicBlock* const fails = block();
  llvm::BasicBlock* const goes_on = block();
  b.CreateCondBr(condition, goes_on, fails);
  b.SetInsertPoint(fails);
  b.CreateRet(b.getInt32(static_cast<uint32_t>(code)));
  b.SetInsertPoint(goes_on);
}

LoopWriter::Value* LoopWriter::room(uint64_t bytes) {
  const llvm::IRBuilder<>::InsertPointGuard guard(b);
  b.SetInsertPoint(&function_->getEntryBlock(), function_->getEntryBlock().getFirstInsertionPt());
  llvm::AllocaInst* const made = b.CreateAlloca(llvm::ArrayType::get(b.getInt8Ty(), bytes));
  made->setAlignment(llvm::Align(64));
  return made;
}

}  // namespace halyard::jit
