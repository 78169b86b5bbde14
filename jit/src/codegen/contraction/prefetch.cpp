// Packing reads rows of B that are far from each other, and no processor foresees their addresses. So while
// tiles add the terms of one panel, they prefetch the elements of the next one: a line of the cache for each
// term, of another part of the panel in each tile of rows.
#include <llvm/IR/Intrinsics.h>

#include <cstddef>

#include "codegen/contraction/tile_loops.h"
#include "vm/decode/jit_abi.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Value;

namespace {

constexpr uint64_t kLine = 64;     // bytes
constexpr uint64_t kMaxShare = 4;  // terms of a tile for each line that it prefetches
// The operand of llvm.prefetch for this cache. The first one is full of the panel that is read.
constexpr uint32_t kSecondLevel = 2;

constexpr uint64_t kPage = 4096;
// B in fewer pages is in a cache. In more, it would evict its own translations.
constexpr uint64_t kManyPages = 256, kMostPages = 4096;

}  // namespace

// The place of the current term among those of its block.
Value* Writer::number_in_block() {
  Value* number = b_.getInt64(0);
  for (size_t level = tiling_.outer_terms; level < terms_.size(); ++level) {
    Value* const in_block = b_.CreateSub(terms_[level], range_of(level).first);
    number = b_.CreateAdd(b_.CreateMul(number, counts_[first_term_loop() + level]), in_block);
  }
  return number;
}

// The element for the current term and the first output of the next panel: of the next outputs in this block
// of terms, or of the first ones in the next block. The last panel has no next one, but prefetching never
// fails.
Value* Writer::address_in_next_panel(llvm::LoadInst* load) {
  Value* const term = terms_.back();
  Value* const output = output_;
  const auto address_at = [&](Value* new_term, Value* new_output) {
    terms_.back() = new_term;
    output_ = new_output;
    forget_values();
    return address(load->getPointerOperand(), 0, 0);
  };
  Value* const next = b_.CreateNUWAdd(output, b_.getInt64(tile_outputs_.count()));
  Value* const in_block = address_at(term, next);
  Value* const in_next_block =
      address_at(b_.CreateAdd(term, b_.getInt64(tiling_.terms_of_block)), b_.getInt64(0));
  terms_.back() = term;
  output_ = output;
  forget_values();
  return b_.CreateSelect(b_.CreateICmpULT(next, counts_[nest_.output_level()]), in_block, in_next_block);
}

// The number of tiles of rows that read a panel; 0 if it is not known.
uint64_t Writer::tiles_of_panel() const {
  const auto* const count = llvm::dyn_cast<llvm::ConstantInt>(row_end_);
  if (!count) return 0;
  return count->getZExtValue() / tile_of_outermost();
}

// Each line is prefetched in one tile of rows, for one term: the lines are divided among as many tiles as
// there are, because more at a time would wait for memory.
void Writer::prefetch(llvm::LoadInst* load) {
  const uint64_t bytes = (load->getType()->getScalarSizeInBits() + 7) / 8;
  const bool is_strided = row_steps_.contains(load);
  if (is_strided && (!has_squares_ || tiling_.outer_terms + 1 != terms_.size())) return;
  const uint64_t outputs = tile_outputs_.count();
  const uint64_t contiguous =
      llvm::divideCeil((is_strided ? tiling_.terms_of_block : outputs) * bytes, kLine);
  const uint64_t lines = contiguous * (is_strided ? outputs : tiling_.terms_of_block);
  const uint64_t lines_of_term = llvm::divideCeil(lines, tiling_.terms_of_block);
  const uint64_t share =
      std::min(llvm::bit_floor(std::max<uint64_t>(tiles_of_panel() / lines_of_term, 1)), kMaxShare);

  Value* const number = number_in_block();
  const auto modulo = [&](Value* of) { return b_.CreateURem(of, b_.getInt64(share)); };
  Value *is_due = nullptr, *at = nullptr;
  if (is_strided) {
    Value* const turn =
        b_.CreateAdd(b_.CreateMul(tile_of_panel_, b_.getInt64(tiling_.terms_of_block)), number);
    Value* const line = b_.CreateUDiv(turn, b_.getInt64(share));
    Value* const output = b_.CreateUDiv(line, b_.getInt64(contiguous));
    Value* const term = terms_.back();
    terms_.back() = range_of(tiling_.outer_terms).first;
    at = b_.CreatePtrAdd(address_in_next_panel(load), b_.CreateMul(output, row_steps_.at(load)));
    terms_.back() = term;
    at = b_.CreatePtrAdd(at, b_.CreateMul(b_.CreateURem(line, b_.getInt64(contiguous)), b_.getInt64(kLine)));
    is_due = b_.CreateAnd(b_.CreateICmpEQ(modulo(turn), b_.getInt64(0)),
                          b_.CreateICmpULT(output, b_.getInt64(outputs)));
  } else {
    Value* const part = b_.CreateUDiv(tile_of_panel_, b_.getInt64(share));
    at = b_.CreatePtrAdd(address_in_next_panel(load), b_.CreateMul(part, b_.getInt64(kLine)));
    is_due = b_.CreateAnd(b_.CreateICmpEQ(modulo(number), modulo(tile_of_panel_)),
                          b_.CreateICmpULT(part, b_.getInt64(contiguous)));
  }
  // A line that is in the cache costs nothing. Frozen, because the address may be outside the buffer.
  at = b_.CreateSelect(is_due, b_.CreateFreeze(at), panels_.at(load));
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                     {at, b_.getInt32(0), b_.getInt32(kSecondLevel), b_.getInt32(1)});
  has_prefetches_ = true;
}

// B's element for the first term and output, or for the last ones.
Value* Writer::address_at_the(bool end, llvm::LoadInst* load) {
  const auto counter = [&](size_t level) -> Value* {
    return end ? b_.CreateSub(counts_[level], b_.getInt64(1)) : b_.getInt64(0);
  };
  output_ = counter(nest_.output_level());
  for (size_t level = 0; level < terms_.size(); ++level) terms_[level] = counter(first_term_loop() + level);
  forget_values();
  Value* const at = b_.CreateFreeze(address(load->getPointerOperand(), 0, 0));
  forget_values();
  return at;
}

// Prefetches a line of each page of B. The prefetches of panels would wait for the translation of each page's
// address, one after the other; these wait for several at a time. Later workgroups of the thread find the
// translations, so one of them does it.
void Writer::prefetch_pages(Value* sharing) {
  if (!tiling_.prefetches || pairs_) return;
  Value* const is_cold =
      b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), sharing, offsetof(halyard_jit_sharing_t, is_cold));
  BasicBlock* const cold = new_block("contraction.cold");
  BasicBlock* const go_on = new_block("contraction.warm");
  b_.CreateCondBr(b_.CreateIsNull(b_.CreateLoad(b_.getInt64Ty(), is_cold)), go_on, cold);
  b_.SetInsertPoint(cold);
  b_.CreateStore(b_.getInt64(0), is_cold);
  tile_outputs_ = {1, 1};
  for (llvm::LoadInst* const load : nest_.loads) {
    if (!is_packable(load)) continue;
    Value* const first = address_at_the(false, load);
    Value* const bytes = b_.CreatePtrDiff(b_.getInt8Ty(), address_at_the(true, load), first);
    Value* const pages = b_.CreateUDiv(bytes, b_.getInt64(kPage));  // many if B is read backwards
    Value* const are_worth_it =
        b_.CreateICmpULT(b_.CreateSub(pages, b_.getInt64(kManyPages)), b_.getInt64(kMostPages - kManyPages));
    Value* const end = b_.CreateSelect(are_worth_it, pages, b_.getInt64(0));
    for_tiles(b_.getInt64(0), end, 1, false, [&](Value* page) {
      Value* const at = b_.CreatePtrAdd(first, b_.CreateNUWMul(page, b_.getInt64(kPage)));
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {at->getType()},
                         {at, b_.getInt32(0), b_.getInt32(kSecondLevel), b_.getInt32(1)});
    });
  }
  b_.CreateBr(go_on);
  b_.SetInsertPoint(go_on);
}

void Writer::prefetch_next_panel() {
  if (!tiling_.prefetches || pairs_) return;
  for (const auto& [load, panel] : panels_) prefetch(load);
}

}  // namespace halyard::jit::contraction
