// One tile: its sums begin, its terms are added, and what follows from the sums is stored.
#include "codegen/contraction/tile_loops.h"
#include "codegen/contraction/writer.h"
#include "codegen/translate.h"

namespace halyard::jit::contraction {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

// Adds one term to each sum of the tile; or copies its elements of B.
void Writer::add_term() {
  forget_values();
  if (is_packing_) {
    for (const auto& [load, panel] : panels_)
      for (uint64_t vector = 0; vector < tile_vectors_; ++vector)
        b_.CreateAlignedStore(value(load, 0, vector), packed_address(load, vector), load->getAlign());
    return;
  }
  prefetch_next_panel();
  for (Instruction& instruction : *nest_.body) {
    if (llvm::isa<llvm::LoadInst>(instruction)) {
      for_each_sum([&](uint64_t row, uint64_t vector, uint64_t) { value(&instruction, row, vector); });
    } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      Output& output = *output_at(store->getPointerOperand());
      for_each_sum([&](uint64_t row, uint64_t vector, uint64_t sum) {
        output.sums[sum] = splat(value(store->getValueOperand(), row, vector));
      });
    }
  }
}

std::vector<Value*> Writer::sums() const {
  std::vector<Value*> all;
  for (const Output& output : outputs_) all.insert(all.end(), output.sums.begin(), output.sums.end());
  return all;
}

// Makes each sum a phi, of `values` where control comes from `from`.
std::vector<PHINode*> Writer::begin_sums(const std::vector<Value*>& values, BasicBlock* from) {
  std::vector<PHINode*> phis;
  if (values.empty()) return phis;
  for (Output& output : outputs_) {
    for (Value*& sum : output.sums) {
      PHINode* const phi = b_.CreatePHI(sum->getType(), 2, "sum");
      phi->addIncoming(values[phis.size()], from);
      phis.push_back(phi);
      sum = phi;
    }
  }
  return phis;
}

void Writer::end_sums(const std::vector<PHINode*>& phis, const std::vector<Value*>& values,
                      BasicBlock* from) {
  for (size_t i = 0; i < phis.size(); ++i) phis[i]->addIncoming(values[i], from);
}

// The block's part of this loop over terms.
std::pair<Value*, Value*> Writer::range_of(size_t level) {
  if (level == tiling_.outer_terms && tiling_.block != 0) return block_;
  return {b_.getInt64(0), counts_[first_term_loop() + level]};
}

// Writes the loops over terms from this level inwards.
void Writer::add_terms(size_t level) {
  if (level == terms_.size()) {
    add_term();
    return;
  }
  if (level + 1 == terms_.size() && adds_pairs()) {
    add_pairs();
    return;
  }
  if (level + 1 == terms_.size() && lanes_ > 1 && has_squares_ && (is_packing_ || panels_.empty())) {
    add_squares(level);
    return;
  }
  const auto [begin, end] = range_of(level);
  for_tiles(begin, end, 1, !is_packing_, [&](Value* term) {
    terms_[level] = term;
    add_terms(level + 1);
  });
}

// Adds the terms of the innermost loop, as many at a time as there are lanes: where elements for consecutive
// outputs are not contiguous, those for consecutive terms are.
void Writer::add_squares(size_t level) {
  const auto [begin, end] = range_of(level);
  Value* const rest = for_tiles(begin, end, lanes_, !is_packing_, [&](Value* first) {
    squares_.clear();
    for (square_term_ = 0; *square_term_ < lanes_; ++*square_term_) {
      terms_[level] = b_.CreateNUWAdd(first, b_.getInt64(*square_term_));
      add_term();
    }
    square_term_.reset();
  });
  for_tiles(rest, end, 1, !is_packing_, [&](Value* term) {
    terms_[level] = term;
    add_term();
  });
}

// Whether the current block of terms is the first one, or the last one. Null if there is only one.
Value* Writer::is_block_at_the(bool end) {
  Value* all = nullptr;
  const auto require = [&](Value* x, Value* y) {
    Value* const same = b_.CreateICmpEQ(x, y);
    all = all ? b_.CreateAnd(all, same) : same;
  };
  for (size_t level = 0; level < tiling_.outer_terms; ++level) {
    Value* const last = b_.CreateSub(counts_[first_term_loop() + level], b_.getInt64(1));
    require(terms_[level], end ? last : b_.getInt64(0));
  }
  if (tiling_.block != 0)
    require(end ? block_.second : block_.first,
            end ? counts_[first_term_loop() + tiling_.outer_terms] : b_.getInt64(0));
  return all;
}

// Begins values of the first term.
void Writer::use_first_term() {
  forget_values();
  std::fill(terms_.begin() + static_cast<ptrdiff_t>(tiling_.outer_terms), terms_.end(), b_.getInt64(0));
}

void Writer::load_sums() {
  use_first_term();
  for (Output& of : outputs_) {
    for_each_sum([&](uint64_t row, uint64_t vector, uint64_t sum) {
      llvm::LoadInst* const load =
          b_.CreateAlignedLoad(type_of(of.store->getValueOperand()->getType()),
                               address(of.store->getPointerOperand(), row, vector), of.store->getAlign());
      load->setAAMetadata(of.store->getAAMetadata());
      of.sums[sum] = load;
    });
  }
}

// Metadata of a store that hold for its copy too.
static void keep_metadata(const llvm::StoreInst& store, llvm::StoreInst& copy) {
  copy.setAAMetadata(store.getAAMetadata());
  copy.setMetadata(kStoredRegister, store.getMetadata(kStoredRegister));
}

void Writer::store_sums() {
  use_first_term();
  for (Output& of : outputs_) {
    for_each_sum([&](uint64_t row, uint64_t vector, uint64_t sum) {
      llvm::StoreInst* const store = b_.CreateAlignedStore(
          of.sums[sum], address(of.store->getPointerOperand(), row, vector), of.store->getAlign());
      keep_metadata(*of.store, *store);
    });
  }
}

// Sums begin with what the program stored before, or with the value that it stores to each of them.
void Writer::begin_tile() {
  for (Output& of : outputs_) of.sums.resize(tile_rows_ * tile_vectors_);
  if (!nest_.first_sum) {
    load_sums();
    return;
  }
  for (Output& of : outputs_)
    for (Value*& sum : of.sums) sum = splat(nest_.first_sum);
  Value* const is_first = is_block_at_the(false);
  if (!is_first) return;
  const std::vector<Value*> filled = sums();
  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const go_on = new_block("contraction.next_block");
  BasicBlock* const begin = new_block("contraction.begin");
  b_.CreateCondBr(is_first, begin, go_on);
  b_.SetInsertPoint(go_on);
  load_sums();
  const std::vector<Value*> loaded = sums();
  b_.CreateBr(begin);
  b_.SetInsertPoint(begin);
  end_sums(begin_sums(filled, from), loaded, go_on);
}

// Stores what the program computes from the sums, after the last block of terms.
void Writer::end_tile() {
  Value* const is_last = nest_.epilogue ? is_block_at_the(true) : nullptr;
  const bool is_read_later = nest_.keeps_sums && !nest_.are_sums_dead;
  if (!is_last) {
    if (is_read_later) store_sums();
    if (nest_.epilogue) write_elements(*nest_.epilogue->body);
    return;
  }
  BasicBlock* const go_on = new_block("contraction.store");
  BasicBlock* const last = new_block("contraction.epilogue");
  BasicBlock* const end = new_block("contraction.end");
  b_.CreateCondBr(is_last, last, go_on);
  b_.SetInsertPoint(go_on);
  store_sums();
  b_.CreateBr(end);
  b_.SetInsertPoint(last);
  if (is_read_later) store_sums();
  write_elements(*nest_.epilogue->body);
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

// Loads, computes and stores what an innermost loop without terms does, for all elements of a tile. Of the
// values to be stored, those of some elements are computed at the same time, because each may be at the end
// of a long chain of operations, such as those of an elementary function.
void Writer::write_elements(BasicBlock& body) {
  constexpr uint64_t kAtATime = 4;
  forget_values();
  std::vector<Instruction*> operations;
  for (Instruction& instruction : body) {
    if (llvm::isa<llvm::LoadInst>(instruction)) {
      for_each_sum([&](uint64_t row, uint64_t vector, uint64_t) { value(&instruction, row, vector); });
    } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      const uint64_t count = tile_rows_ * tile_vectors_;
      for (uint64_t first = 0; first < count; first += kAtATime) {
        const auto for_each = [&](auto visit) {
          for (uint64_t sum = first; sum < std::min(first + kAtATime, count); ++sum)
            visit(sum / tile_vectors_, sum % tile_vectors_);
        };
        for (Instruction* const operation : operations)
          for_each([&](uint64_t row, uint64_t vector) { value(operation, row, vector); });
        for_each([&](uint64_t row, uint64_t vector) {
          llvm::StoreInst* const copy =
              b_.CreateAlignedStore(splat(value(store->getValueOperand(), row, vector)),
                                    address(store->getPointerOperand(), row, vector), store->getAlign());
          keep_metadata(*store, *copy);
        });
      }
    } else if (instruction.getType()->isFloatingPointTy() && !llvm::isa<PHINode>(instruction)) {
      operations.push_back(&instruction);
    }
  }
}

// The first tile of the rows from `begin` on reads B itself and copies it for the other tiles, so that
// waiting for memory and additions overlap.
void Writer::write_tile_that_may_pack(Value* begin, Value* row, Value* output) {
  Value* const is_first = nest_.row_loops < 2 ? b_.CreateICmpEQ(row, begin)
                                              : b_.CreateAnd(b_.CreateICmpEQ(outer_row_, begin),
                                                             b_.CreateICmpEQ(row, b_.getInt64(0)));
  BasicBlock* const first = new_block("contraction.first_tile");
  BasicBlock* const other = new_block("contraction.tile");
  BasicBlock* const end = new_block("contraction.tile_end");
  b_.CreateCondBr(is_first, first, other);
  for (BasicBlock* const block : {first, other}) {
    b_.SetInsertPoint(block);
    forget_values();
    adds_and_packs_ = block == first;
    write_tile(row, output);
    b_.CreateBr(end);
  }
  forget_values();
  b_.SetInsertPoint(end);
}

void Writer::write_tile(Value* row, Value* output) {
  row_ = row;
  output_ = output;
  if (nest_.is_elementwise()) return write_elements(*nest_.body);
  if (rows_panel_ && adds_pairs()) pack_rows(tiling_.outer_terms);
  begin_tile();
  add_terms(tiling_.outer_terms);
  end_tile();
}

}  // namespace halyard::jit::contraction
