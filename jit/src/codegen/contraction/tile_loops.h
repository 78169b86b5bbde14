// Loops over tiles and blocks in the new nest.
#pragma once

#include "codegen/contraction/writer.h"

namespace halyard::jit::contraction {

// Writes `body` for each whole tile of `size` from `begin` up to `end`. Returns where the rest begins. The
// body changes the sums, if `adds` is true.
template <typename Body>
llvm::Value* Writer::for_tiles(llvm::Value* begin, llvm::Value* end, uint64_t size, bool adds, Body body) {
  llvm::Value* const count = count_between(begin, end);
  llvm::Value* const rest = size == 1 ? b_.getInt64(0) : b_.CreateURem(count, b_.getInt64(size));
  llvm::Value* const tiles_end = size == 1 ? end : b_.CreateSub(end, rest);
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    if (known->getZExtValue() < size) return begin;
    if (known->getZExtValue() < 2 * size) {
      body(begin);
      return tiles_end;
    }
  }
  llvm::BasicBlock* const from = b_.GetInsertBlock();
  llvm::BasicBlock* const head = new_block("contraction");
  llvm::BasicBlock* const done = new_block("contraction.done");
  b_.CreateCondBr(b_.CreateICmpEQ(begin, tiles_end), done, head);
  b_.SetInsertPoint(head);
  llvm::PHINode* const counter = b_.CreatePHI(b_.getInt64Ty(), 2, "tile");
  counter->addIncoming(begin, from);
  const std::vector<llvm::Value*> before = adds ? sums() : std::vector<llvm::Value*>();
  const std::vector<llvm::PHINode*> phis = begin_sums(before, from);
  body(counter);
  llvm::BasicBlock* const latch = b_.GetInsertBlock();
  llvm::Value* const next = b_.CreateNUWAdd(counter, b_.getInt64(size));
  counter->addIncoming(next, latch);
  b_.CreateCondBr(b_.CreateICmpEQ(next, tiles_end), done, head);
  const std::vector<llvm::Value*> after = adds ? sums() : std::vector<llvm::Value*>();
  end_sums(phis, after, latch);
  b_.SetInsertPoint(done);
  end_sums(begin_sums(before, from), after, latch);
  return tiles_end;
}

// Writes `body` for each block of `length` of what is counted; the last one may have fewer.
template <typename Body>
void Writer::for_blocks(llvm::Value* count, llvm::Value* length, Body body) {
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(count);
  const auto* const known_length = llvm::dyn_cast<llvm::ConstantInt>(length);
  const bool has_rest = !known || !known_length || known->getZExtValue() % known_length->getZExtValue() != 0;
  llvm::Value* const blocks =
      b_.CreateAdd(b_.CreateUDiv(b_.CreateSub(count, b_.getInt64(1)), length), b_.getInt64(1));
  for_tiles(b_.getInt64(0), blocks, 1, false, [&](llvm::Value* block) {
    llvm::Value* const begin = b_.CreateNUWMul(block, length);
    llvm::Value* const end = b_.CreateNUWAdd(begin, length);
    body(begin, has_rest ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, count) : end);
  });
}

}  // namespace halyard::jit::contraction
