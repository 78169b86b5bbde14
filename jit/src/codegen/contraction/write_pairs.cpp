// Writes sums of two products at a time: B's factors for two terms are next to each other in a vector of
// 16-bit elements, and A's two factors are repeated in another one.
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

#include "codegen/contraction/pairs.h"
#include "codegen/contraction/tile_loops.h"
#include "codegen/contraction/writer.h"
#include "codegen/loops.h"

namespace halyard::jit::contraction {

using llvm::Value;

namespace {

constexpr unsigned kBytesOfPair = 4;
constexpr uint64_t kPackedTerms = 16;  // of A that are converted at a time

}  // namespace

bool Writer::adds_pairs() const { return pairs_ && can_add_pairs(function_, lanes_); }

// Offsets that are not known yet must leave the factors 16 bits.
Value* Writer::are_offsets_small() {
  Value* all = b_.getTrue();
  for (const Factor* const of : {&pairs_->of_rows, &pairs_->of_outputs}) {
    if (!of->offset || llvm::isa<llvm::Constant>(of->offset)) continue;
    llvm::Type* const type = of->offset->getType();
    Value* const from_least = b_.CreateSub(of->offset, llvm::ConstantInt::getSigned(type, kLeastOffset));
    all = b_.CreateAnd(
        all, b_.CreateICmpULE(from_least, llvm::ConstantInt::get(type, kMostOffset - kLeastOffset)));
  }
  return all;
}

// The factors of loaded elements, which are a vector or one.
Value* Writer::factors(const Factor& of, Value* loaded) {
  llvm::Type* const type = loaded->getType()->getWithNewBitWidth(16);
  Value* const wide = of.is_signed ? b_.CreateSExt(loaded, type) : b_.CreateZExt(loaded, type);
  if (!of.offset) return wide;
  Value* offset = b_.CreateTrunc(of.offset, b_.getInt16Ty());
  if (const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    offset = b_.CreateVectorSplat(vector->getNumElements(), offset);
  return of.is_subtracted ? b_.CreateSub(wide, offset) : b_.CreateAdd(wide, offset);
}

// The terms of the innermost loop, or of its part in the block, as a number of pairs.
Value* Writer::pairs_of_innermost() {
  const auto [begin, end] = range_of(terms_.size() - 1);
  Value* const one = b_.getInt64(1);
  return b_.CreateLShr(b_.CreateAdd(count_between(begin, end), one), one);
}

// The number of the pair in the block, for the pair whose first term is the current one.
Value* Writer::number_of_pair() {
  Value* run = b_.getInt64(0);  // of the innermost loop
  const size_t innermost = terms_.size() - 1;
  for (size_t level = tiling_.outer_terms; level < innermost; ++level) {
    Value* const in_block = b_.CreateSub(terms_[level], range_of(level).first);
    const auto [begin, end] = range_of(level);
    run = b_.CreateAdd(b_.CreateMul(run, count_between(begin, end)), in_block);
  }
  Value* const in_run = b_.CreateLShr(b_.CreateSub(terms_[innermost], range_of(innermost).first), 1);
  return b_.CreateAdd(b_.CreateMul(run, pairs_of_innermost()), in_run);
}

// B's place in its panel.
Value* Writer::address_of_pairs(uint64_t vector) {
  Value* const at =
      b_.CreateAdd(b_.CreateMul(number_of_pair(), b_.getInt64(tile_vectors_)), b_.getInt64(vector));
  return b_.CreatePtrAdd(pairs_panel_, b_.CreateMul(at, b_.getInt64(lanes_ * kBytesOfPair)));
}

// A's place in its panel: one row after the other.
Value* Writer::address_of_row_pair(uint64_t row) {
  Value* const at = b_.CreateAdd(number_of_pair(), b_.getInt64(row * pairs_of_block_));
  return b_.CreatePtrAdd(rows_panel_, b_.CreateMul(at, b_.getInt64(kBytesOfPair)));
}

void Writer::add_panels_of_pairs() {
  const uint64_t of_outputs =
      llvm::alignTo(pairs_of_block_ * tiling_.outputs.front().in_vectors() * kBytesOfPair, 64);
  const uint64_t bytes = of_outputs + pairs_of_block_ * tiling_.rows.front() * kBytesOfPair;
  llvm::AllocaInst* const memory = tiling_.is_shared ? shared_panel_memory(bytes) : panel_memory(bytes);
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  if (!tiling_.is_shared) b_.SetInsertPoint(memory->getNextNode());
  pairs_panel_ = memory;
  rows_panel_ = b_.CreatePtrAdd(memory, b_.getInt64(of_outputs));
}

// Whether terms are added in pairs, with the tiles that were chosen.
void Writer::choose_pairs() {
  pairs_ = find_pairs(nest_, dependence_, evolution_);
  if (!pairs_) return;
  for (const Tiling::Outputs& tile : tiling_.outputs)
    if (tile.lanes > 1 && !can_add_pairs(function_, tile.lanes)) pairs_.reset();
  if (!pairs_ || (!nest_.strided.empty() && !tiling_.is_packed)) return pairs_.reset();
  const llvm::LoadInst& of_rows = *pairs_->of_rows.load;
  const llvm::SCEV* address = evolution_.getSCEV(const_cast<Value*>(of_rows.getPointerOperand()));
  for (; const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address);
       address = recurrence->getStart()) {
    if (recurrence->getLoop() != nest_.loops.back()) continue;
    are_rows_contiguous_ = constant_of(recurrence->getStepRecurrence(evolution_)) ==
                           of_rows.getType()->getScalarSizeInBits() / 8;
  }
  if (!tiling_.is_packed) return;
  // The most pairs of a block: each run of the innermost loop ends with its own.
  const std::optional<uint64_t> last = constant_of(nest_.last.back());
  const bool is_divided = tiling_.block != 0 && tiling_.outer_terms + 1 == terms_.size();
  const uint64_t run = is_divided ? tiling_.block : last ? *last + 1 : 1;
  pairs_of_block_ = tiling_.terms_of_block / run * ((run + 1) / 2);
}

// B's factors for the current term and the next one, alternately. If there is no next one, the others may be
// anything, because A has zeros there.
Value* Writer::outputs_pair(Value* term, bool has_second, uint64_t vector) {
  const Factor& of = pairs_->of_outputs;
  const auto load_at = [&](Value* at) {
    terms_.back() = at;
    forget_values();
    return load(of.load, 0, vector);
  };
  Value* const first = load_at(term);
  Value* const second = has_second ? load_at(b_.CreateNUWAdd(term, b_.getInt64(1)))
                                   : llvm::Constant::getNullValue(first->getType());
  terms_.back() = term;
  forget_values();
  llvm::SmallVector<int, 32> mask;
  for (int lane = 0; lane < static_cast<int>(lanes_); ++lane)
    mask.append({lane, lane + static_cast<int>(lanes_)});
  return factors(of, b_.CreateShuffleVector(first, second, mask));
}

// A's factors for the current term and the next one, as 32 bits.
Value* Writer::row_pair(Value* term, bool has_second, uint64_t row) {
  const Factor& of = pairs_->of_rows;
  terms_.back() = term;
  forget_values();
  Value* both = nullptr;
  if (has_second && are_rows_contiguous_) {
    llvm::Type* const type = llvm::FixedVectorType::get(of.load->getType(), 2);
    both = factors(of,
                   b_.CreateAlignedLoad(type, address(of.load->getPointerOperand(), row, 0), llvm::Align(1)));
  } else {
    const auto load_at = [&](Value* at) {
      terms_.back() = at;
      forget_values();
      return factors(of,
                     b_.CreateAlignedLoad(of.load->getType(), address(of.load->getPointerOperand(), row, 0),
                                          of.load->getAlign()));
    };
    llvm::Type* const type = llvm::FixedVectorType::get(b_.getInt16Ty(), 2);
    both = b_.CreateInsertElement(llvm::Constant::getNullValue(type), load_at(term), b_.getInt64(0));
    if (has_second)
      both = b_.CreateInsertElement(both, load_at(b_.CreateNUWAdd(term, b_.getInt64(1))), b_.getInt64(1));
    terms_.back() = term;
    forget_values();
  }
  return b_.CreateBitCast(both, b_.getInt32Ty());
}

// Adds two terms to each sum of the tile, or one; or copies their elements of B.
void Writer::add_pair(Value* term, bool has_second) {
  terms_.back() = term;
  forget_values();
  if (is_packing_) {
    for (uint64_t vector = 0; vector < tile_vectors_; ++vector) {
      Value* const pair = outputs_pair(term, has_second, vector);
      b_.CreateAlignedStore(pair, address_of_pairs(vector), llvm::Align(kBytesOfPair));
    }
    return;
  }
  const auto lanes = static_cast<unsigned>(lanes_);
  llvm::Type* const type = llvm::FixedVectorType::get(b_.getInt16Ty(), 2 * lanes);
  std::vector<Value*> of_outputs, of_rows;
  for (uint64_t vector = 0; vector < tile_vectors_; ++vector)
    of_outputs.push_back(pairs_panel_
                             ? b_.CreateAlignedLoad(type, address_of_pairs(vector), llvm::Align(kBytesOfPair))
                             : outputs_pair(term, has_second, vector));
  for (uint64_t row = 0; row < tile_rows_; ++row) {
    Value* const pair = pairs_panel_ ? b_.CreateAlignedLoad(b_.getInt32Ty(), address_of_row_pair(row),
                                                            llvm::Align(kBytesOfPair))
                                     : row_pair(term, has_second, row);
    of_rows.push_back(b_.CreateBitCast(b_.CreateVectorSplat(lanes, pair), type));
  }
  const llvm::Intrinsic::ID product = product_of_pairs(function_, lanes_);
  for_each_sum([&](uint64_t row, uint64_t vector, uint64_t sum) {
    Value*& of = outputs_.front().sums[sum];
    of = b_.CreateAdd(of, b_.CreateIntrinsic(product, {}, {of_rows[row], of_outputs[vector]}));
  });
}

void Writer::add_pairs() {
  const auto [begin, end] = range_of(terms_.size() - 1);
  Value* const rest = for_tiles(begin, end, 2, !is_packing_, [&](Value* term) { add_pair(term, true); });
  for_tiles(rest, end, 1, !is_packing_, [&](Value* term) { add_pair(term, false); });
}

// Copies A's factors for the tile of rows and the block of terms.
void Writer::pack_rows(size_t level) {
  if (level + 1 < terms_.size()) {
    const auto [begin, end] = range_of(level);
    for_tiles(begin, end, 1, false, [&](Value* term) {
      terms_[level] = term;
      pack_rows(level + 1);
    });
    return;
  }
  const Factor& of = pairs_->of_rows;
  const auto pack = [&](Value* begin, Value* end, uint64_t terms, auto pairs_of) {
    return for_tiles(begin, end, terms, false, [&](Value* term) {
      for (uint64_t row = 0; row < tile_rows_; ++row) {
        terms_.back() = term;
        forget_values();
        Value* const pairs = pairs_of(term, row);
        b_.CreateAlignedStore(pairs, address_of_row_pair(row), llvm::Align(kBytesOfPair));
      }
    });
  };
  auto [begin, end] = range_of(level);
  if (are_rows_contiguous_)
    begin = pack(begin, end, kPackedTerms, [&](Value*, uint64_t row) {
      llvm::Type* const type = llvm::FixedVectorType::get(of.load->getType(), kPackedTerms);
      return factors(
          of, b_.CreateAlignedLoad(type, address(of.load->getPointerOperand(), row, 0), llvm::Align(1)));
    });
  begin = pack(begin, end, 2, [&](Value* term, uint64_t row) { return row_pair(term, true, row); });
  pack(begin, end, 1, [&](Value* term, uint64_t row) { return row_pair(term, false, row); });
}

}  // namespace halyard::jit::contraction
