// The new order of a contraction:
//
//   for rows, in groups:
//     for terms, in blocks:
//       for rows of the group, in tiles:
//         for outputs, in tiles: load the tile; for term of the block: add; store the tile
//     check the stop word
//
// The terms of a tile are added in registers: a vector for each row and each `lanes` outputs. What is read
// for a block of terms stays in the cache for all rows of the group. If B is packed, the loop over outputs is
// around the one over rows, and begins with a copy of B's elements for the block and the tile of outputs, in
// the order in which each tile of rows reads them.
#include "codegen/contraction/write.h"

#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>
#include <map>
#include <optional>

#include "codegen/contraction/dependence.h"
#include "codegen/contraction/tile.h"
#include "codegen/contraction/transpose.h"
#include "codegen/loops.h"
#include "codegen/stop_word.h"

namespace halyard::jit::contraction {

namespace {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::SCEV;
using llvm::Value;

class Writer {
 public:
  Writer(const Nest& nest, llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
      : nest_(nest),
        function_(function),
        evolution_(analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)),
        target_(analyses.getResult<llvm::TargetIRAnalysis>(function)),
        before_(nest.before()),
        after_(nest.after()),
        b_(before_->getTerminator()),
        expander_(evolution_, function.getDataLayout(), "contraction"),
        dependence_(nest) {}

  bool write();

 private:
  // The sums of one output in each tile. Several stores may be to the same output.
  struct Output {
    llvm::StoreInst* store = nullptr;
    const SCEV* address = nullptr;
    std::vector<Value*> sums;  // of the current tile, row by row
  };
  using Key = std::pair<Value*, std::pair<uint64_t, uint64_t>>;  // a value, its row and vector in the tile

  void expand_steps();
  void find_outputs();
  Tiling tiling(uint64_t widest);
  Value* are_rows_apart();
  void write_groups();
  void write_blocks(size_t level, Value* begin, Value* end);
  void write_tiles(Value* begin, Value* end);
  template <typename Body>
  void for_rows(Value* begin, Value* end, Body body);
  template <typename Body>
  void for_outputs(Body body);
  bool is_packable(llvm::LoadInst* load);
  void add_panels();
  void pack(Value* output);
  Value* packed_address(llvm::LoadInst* load, uint64_t vector);
  void write_tile(Value* row, Value* output);
  std::pair<Value*, Value*> range_of(size_t level);
  void add_terms(size_t level);
  void add_squares(size_t level);
  void add_term();
  Value* load_strided(llvm::LoadInst* load, uint64_t row, uint64_t vector);
  std::vector<Value*> sums() const;
  std::vector<PHINode*> begin_sums(const std::vector<Value*>& values, BasicBlock* from);
  static void end_sums(const std::vector<PHINode*>& phis, const std::vector<Value*>& values,
                       BasicBlock* from);
  void check_stop_word(Value* next);
  void keep_old_nest(Value* is_new, BasicBlock* start, BasicBlock* end);
  void delete_old_nest(Value* entered, BasicBlock* start);

  Value* count_between(Value* begin, Value* end);
  template <typename Body>
  Value* for_tiles(Value* begin, Value* end, uint64_t size, bool adds, Body body);
  template <typename Body>
  void for_blocks(Value* count, uint64_t size, Body body);
  Value* scalar(Value* value, uint64_t row, uint64_t vector);
  Value* step_of(const PHINode& phi);
  Value* advanced(const PHINode& phi, Value* start, Value* counter);
  Value* counter_value(PHINode* phi, uint64_t row, uint64_t vector);
  template <typename CopyOf>
  Value* copy_with(Instruction* instruction, CopyOf copy_of);
  Value* value(Value* value, uint64_t row, uint64_t vector);
  Value* load(llvm::LoadInst* load, uint64_t row, uint64_t vector);
  Value* widened(Instruction* instruction, uint64_t row, uint64_t vector);
  Value* splat(Value* value) {
    return lanes_ == 1 || value->getType()->isVectorTy()
               ? value
               : b_.CreateVectorSplat(static_cast<unsigned>(lanes_), value);
  }
  llvm::Type* type_of(llvm::Type* scalar) const {
    return lanes_ == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes_));
  }
  Key key(Value* value, uint64_t row, uint64_t vector) {
    const unsigned on = dependence_.of(value);
    return {value, {on & Dependence::kRows ? row : 0, on & Dependence::kOutputs ? vector : 0}};
  }
  Value* counter_of(const Loop* loop, uint64_t row, uint64_t vector);
  size_t first_term_loop() const { return nest_.output_level() + 1; }
  // The output at this address; null if there is none.
  Output* output_at(Value* pointer) {
    const SCEV* const address = evolution_.getSCEV(pointer);
    const auto found = std::find_if(outputs_.begin(), outputs_.end(),
                                    [&](const Output& output) { return output.address == address; });
    return found == outputs_.end() ? nullptr : &*found;
  }
  BasicBlock* new_block(const char* name) {
    return BasicBlock::Create(b_.getContext(), name, &function_, nest_.outermost()->getHeader());
  }
  Value* expand(const SCEV* value) {
    return expander_.expandCodeFor(value, value->getType(), before_->getTerminator());
  }
  template <typename Visit>
  void for_each_sum(Visit visit) {
    for (uint64_t row = 0; row < tile_rows_; ++row)
      for (uint64_t vector = 0; vector < tile_vectors_; ++vector)
        visit(row, vector, row * tile_vectors_ + vector);
  }
  void forget_values() {
    scalars_.clear();
    values_.clear();
  }

  const Nest& nest_;
  llvm::Function& function_;
  llvm::ScalarEvolution& evolution_;
  const llvm::TargetTransformInfo& target_;
  BasicBlock* before_;
  BasicBlock* after_;
  llvm::IRBuilder<> b_;
  llvm::SCEVExpander expander_;
  Dependence dependence_;
  Tiling tiling_;
  std::vector<Output> outputs_;
  llvm::DenseMap<const SCEV*, Value*> steps_;  // of counters, computed before the nest
  std::vector<Value*> counts_;                 // of the iterations of each loop
  Value* row_end_ = nullptr;                   // the number of iterations of the outermost loop over rows
  // The block of terms: its part of the loop that is divided.
  std::pair<Value*, Value*> block_;
  // The current tile: its first row and output, its size, and the counters of the terms.
  Value* outer_row_ = nullptr;  // with two loops over rows
  Value* row_ = nullptr;
  Value* output_ = nullptr;
  uint64_t tile_rows_ = 1;
  uint64_t tile_vectors_ = 1;
  uint64_t lanes_ = 1;
  std::vector<Value*> terms_;
  // Copies of the nest's values in the current block: for addresses, and as vectors.
  std::map<Key, Value*> scalars_;
  std::map<Key, Value*> values_;
  // For loads that are not contiguous: the bytes between elements for consecutive outputs.
  std::map<llvm::LoadInst*, Value*> row_steps_;
  bool has_squares_ = false;  // they are loaded along the terms, and transposed
  // Of such loads, the vectors for consecutive terms; and the term in the square that is added.
  std::map<Key, std::vector<Value*>> squares_;
  std::optional<uint64_t> square_term_;
  // For loads that are packed: the copies of their elements.
  std::map<llvm::LoadInst*, Value*> panels_;
  bool is_packing_ = false;
  // Where the old nest goes on at the given row.
  std::vector<std::pair<Value*, BasicBlock*>> stops_;
};

Value* Writer::counter_of(const Loop* loop, uint64_t row, uint64_t vector) {
  const auto level =
      static_cast<size_t>(std::find(nest_.loops.begin(), nest_.loops.end(), loop) - nest_.loops.begin());
  if (level + 1 < nest_.row_loops) return outer_row_;
  if (level < nest_.row_loops) return b_.CreateNUWAdd(row_, b_.getInt64(row));
  if (level == nest_.output_level()) return b_.CreateNUWAdd(output_, b_.getInt64(vector * lanes_));
  return terms_[level - first_term_loop()];
}

Value* Writer::step_of(const PHINode& phi) {
  const SCEV* const value = evolution_.getSCEV(const_cast<PHINode*>(&phi));
  return steps_.lookup(llvm::cast<llvm::SCEVAddRecExpr>(value)->getStepRecurrence(evolution_));
}

// The phi's value after `counter` iterations of its loop.
Value* Writer::advanced(const PHINode& phi, Value* start, Value* counter) {
  Value* const step = step_of(phi);
  Value* const distance = b_.CreateMul(b_.CreateZExtOrTrunc(counter, step->getType()), step);
  return phi.getType()->isPointerTy() ? b_.CreatePtrAdd(start, distance) : b_.CreateAdd(start, distance);
}

// The counter as it is for the first lane.
Value* Writer::counter_value(PHINode* phi, uint64_t row, uint64_t vector) {
  const Loop* const loop = nest_.loop_of(*phi);
  Value* const start = scalar(phi->getIncomingValueForBlock(loop->getLoopPreheader()), row, vector);
  return advanced(*phi, start, counter_of(loop, row, vector));
}

// A copy of the instruction with copies of its operands.
template <typename CopyOf>
Value* Writer::copy_with(Instruction* instruction, CopyOf copy_of) {
  llvm::SmallVector<Value*, 4> operands;
  for (Value* const operand : instruction->operands()) operands.push_back(copy_of(operand));
  Instruction* const copy = instruction->clone();
  for (unsigned i = 0; i < operands.size(); ++i) copy->setOperand(i, operands[i]);
  return b_.Insert(copy, instruction->getName());
}

// The value as it is for the first lane. Not for loads.
Value* Writer::scalar(Value* value, uint64_t row, uint64_t vector) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !nest_.outermost()->contains(instruction)) return value;
  const Key at = key(value, row, vector);
  if (const auto found = scalars_.find(at); found != scalars_.end()) return found->second;
  auto* const phi = llvm::dyn_cast<PHINode>(instruction);
  Value* const copy =
      phi ? counter_value(phi, row, vector)
          : copy_with(instruction, [&](Value* operand) { return scalar(operand, row, vector); });
  return scalars_[at] = copy;
}

Value* Writer::load(llvm::LoadInst* load, uint64_t row, uint64_t vector) {
  if (const Output* const output = output_at(load->getPointerOperand()))
    return output->sums[row * tile_vectors_ + vector];
  const bool is_packed = !is_packing_ && panels_.contains(load);
  if (!is_packed && lanes_ > 1 && row_steps_.contains(load)) return load_strided(load, row, vector);
  const bool is_vector = dependence_.of(load) & Dependence::kOutputs;
  llvm::Type* const type = is_vector ? type_of(load->getType()) : load->getType();
  if (is_packed) return b_.CreateAlignedLoad(type, packed_address(load, vector), load->getAlign());
  llvm::LoadInst* const made =
      b_.CreateAlignedLoad(type, scalar(load->getPointerOperand(), row, vector), load->getAlign());
  made->setAAMetadata(load->getAAMetadata());
  return made;
}

// The instruction with vectors for its operands.
Value* Writer::widened(Instruction* instruction, uint64_t row, uint64_t vector) {
  llvm::SmallVector<Value*, 4> operands;
  const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
  const unsigned count = call ? call->arg_size() : instruction->getNumOperands();
  for (unsigned i = 0; i < count; ++i)
    operands.push_back(splat(value(instruction->getOperand(i), row, vector)));
  llvm::Type* const type = type_of(instruction->getType());
  Value* made = nullptr;
  if (call) {
    made = b_.CreateIntrinsic(type, call->getIntrinsicID(), operands);
  } else if (const auto* const cast = llvm::dyn_cast<llvm::CastInst>(instruction)) {
    made = b_.CreateCast(cast->getOpcode(), operands[0], type);
  } else if (const auto* const compare = llvm::dyn_cast<llvm::CmpInst>(instruction)) {
    made = b_.CreateCmp(compare->getPredicate(), operands[0], operands[1]);
  } else if (llvm::isa<llvm::SelectInst>(instruction)) {
    made = b_.CreateSelect(operands[0], operands[1], operands[2]);
  } else if (llvm::isa<llvm::FreezeInst>(instruction)) {
    made = b_.CreateFreeze(operands[0]);
  } else if (llvm::isa<llvm::UnaryOperator>(instruction)) {
    made = b_.CreateUnOp(static_cast<Instruction::UnaryOps>(instruction->getOpcode()), operands[0]);
  } else {
    made = b_.CreateBinOp(static_cast<Instruction::BinaryOps>(instruction->getOpcode()), operands[0],
                          operands[1]);
  }
  if (auto* const copy = llvm::dyn_cast<Instruction>(made)) copy->copyIRFlags(instruction);
  return made;
}

// The value for all lanes: a vector if it differs between outputs.
Value* Writer::value(Value* value, uint64_t row, uint64_t vector) {
  auto* const instruction = llvm::dyn_cast<Instruction>(value);
  if (!instruction || !nest_.outermost()->contains(instruction)) return value;
  const Key at = key(value, row, vector);
  if (const auto found = values_.find(at); found != values_.end()) return found->second;
  const bool is_vector = lanes_ > 1 && dependence_.of(value) & Dependence::kOutputs;
  Value* made = nullptr;
  if (auto* const read = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
    made = load(read, row, vector);
  } else if (auto* const phi = llvm::dyn_cast<PHINode>(instruction)) {
    made = scalar(phi, row, vector);
    if (is_vector) {
      Value* const lanes = b_.CreateStepVector(type_of(phi->getType()));
      made = b_.CreateAdd(splat(made), b_.CreateMul(splat(step_of(*phi)), lanes));
    }
  } else if (is_vector) {
    made = widened(instruction, row, vector);
  } else {
    made = copy_with(instruction, [&](Value* operand) { return this->value(operand, row, vector); });
  }
  return values_[at] = made;
}

Value* Writer::count_between(Value* begin, Value* end) {
  using llvm::PatternMatch::m_Add, llvm::PatternMatch::m_ConstantInt, llvm::PatternMatch::m_Specific;
  llvm::ConstantInt* count = nullptr;
  return match(end, m_Add(m_Specific(begin), m_ConstantInt(count))) ? count : b_.CreateSub(end, begin);
}

// Writes `body` for each whole tile of `size` from `begin` up to `end`. Returns where the rest begins. The
// body changes the sums, if `adds` is true.
template <typename Body>
Value* Writer::for_tiles(Value* begin, Value* end, uint64_t size, bool adds, Body body) {
  Value* const count = count_between(begin, end);
  Value* const rest = size == 1 ? b_.getInt64(0) : b_.CreateURem(count, b_.getInt64(size));
  Value* const tiles_end = size == 1 ? end : b_.CreateSub(end, rest);
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(count)) {
    if (known->getZExtValue() < size) return begin;
    if (known->getZExtValue() < 2 * size) {
      body(begin);
      return tiles_end;
    }
  }
  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const head = new_block("contraction");
  BasicBlock* const done = new_block("contraction.done");
  b_.CreateCondBr(b_.CreateICmpEQ(begin, tiles_end), done, head);
  b_.SetInsertPoint(head);
  PHINode* const counter = b_.CreatePHI(b_.getInt64Ty(), 2, "tile");
  counter->addIncoming(begin, from);
  const std::vector<Value*> before = adds ? sums() : std::vector<Value*>();
  const std::vector<PHINode*> phis = begin_sums(before, from);
  body(counter);
  BasicBlock* const latch = b_.GetInsertBlock();
  Value* const next = b_.CreateNUWAdd(counter, b_.getInt64(size));
  counter->addIncoming(next, latch);
  b_.CreateCondBr(b_.CreateICmpEQ(next, tiles_end), done, head);
  const std::vector<Value*> after = adds ? sums() : std::vector<Value*>();
  end_sums(phis, after, latch);
  b_.SetInsertPoint(done);
  end_sums(begin_sums(before, from), after, latch);
  return tiles_end;
}

// Writes `body` for each block of `size` of what is counted; the last one may have fewer.
template <typename Body>
void Writer::for_blocks(Value* count, uint64_t size, Body body) {
  Value* const length = b_.getInt64(size);
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(count);
  const bool has_rest = !known || known->getZExtValue() % size != 0;
  Value* const blocks =
      b_.CreateAdd(b_.CreateUDiv(b_.CreateSub(count, b_.getInt64(1)), length), b_.getInt64(1));
  for_tiles(b_.getInt64(0), blocks, 1, false, [&](Value* block) {
    Value* const begin = b_.CreateNUWMul(block, length);
    Value* const end = b_.CreateNUWAdd(begin, length);
    body(begin, has_rest ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, end, count) : end);
  });
}

// Adds one term to each sum of the tile; or copies its elements of B.
void Writer::add_term() {
  forget_values();
  if (is_packing_) {
    for (const auto& [load, panel] : panels_)
      for (uint64_t vector = 0; vector < tile_vectors_; ++vector)
        b_.CreateAlignedStore(value(load, 0, vector), packed_address(load, vector), load->getAlign());
    return;
  }
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

// The elements for the outputs of a vector, which are not contiguous.
Value* Writer::load_strided(llvm::LoadInst* load, uint64_t row, uint64_t vector) {
  const auto load_lane = [&](llvm::Type* type, uint64_t lane) {
    Value* const first = scalar(load->getPointerOperand(), row, vector);
    Value* const distance = b_.CreateMul(row_steps_.at(load), b_.getInt64(lane));
    llvm::LoadInst* const made =
        b_.CreateAlignedLoad(type, b_.CreatePtrAdd(first, distance), load->getAlign());
    made->setAAMetadata(load->getAAMetadata());
    return made;
  };
  llvm::Type* const type = type_of(load->getType());
  if (!square_term_) {
    Value* all = llvm::PoisonValue::get(type);
    for (uint64_t lane = 0; lane < lanes_; ++lane)
      all = b_.CreateInsertElement(all, load_lane(load->getType(), lane), b_.getInt64(lane));
    return all;
  }
  std::vector<Value*>& square = squares_[key(load, row, vector)];
  if (square.empty()) {  // at the first term
    for (uint64_t lane = 0; lane < lanes_; ++lane) square.push_back(load_lane(type, lane));
    square = transpose(b_, std::move(square), load->getType()->getScalarSizeInBits() / 8);
  }
  return square[*square_term_];
}

void Writer::write_tile(Value* row, Value* output) {
  row_ = row;
  output_ = output;
  const auto use_first_term = [&] {
    forget_values();
    std::fill(terms_.begin() + tiling_.outer_terms, terms_.end(), b_.getInt64(0));
  };
  use_first_term();
  for (Output& of : outputs_) {
    of.sums.resize(tile_rows_ * tile_vectors_);
    for_each_sum([&](uint64_t r, uint64_t vector, uint64_t sum) {
      llvm::LoadInst* const load =
          b_.CreateAlignedLoad(type_of(of.store->getValueOperand()->getType()),
                               scalar(of.store->getPointerOperand(), r, vector), of.store->getAlign());
      load->setAAMetadata(of.store->getAAMetadata());
      of.sums[sum] = load;
    });
  }
  add_terms(tiling_.outer_terms);
  use_first_term();
  for (Output& of : outputs_) {
    for_each_sum([&](uint64_t r, uint64_t vector, uint64_t sum) {
      b_.CreateAlignedStore(of.sums[sum], scalar(of.store->getPointerOperand(), r, vector),
                            of.store->getAlign())
          ->setAAMetadata(of.store->getAAMetadata());
    });
  }
}

// Writes `body` for each tile of rows, from `begin` up to `end` of the outermost loop over rows.
template <typename Body>
void Writer::for_rows(Value* begin, Value* end, Body body) {
  const auto for_innermost = [&](Value* at, Value* to) {
    for (const uint64_t rows : tiling_.rows) {
      at = for_tiles(at, to, rows, false, [&](Value* row) {
        tile_rows_ = rows;
        body(row);
      });
    }
  };
  if (nest_.row_loops < 2) {
    for_innermost(begin, end);
    return;
  }
  for_tiles(begin, end, 1, false, [&](Value* row) {
    outer_row_ = row;
    for_innermost(b_.getInt64(0), counts_[1]);
  });
}

// Writes `body` for each tile of outputs.
template <typename Body>
void Writer::for_outputs(Body body) {
  Value* output = b_.getInt64(0);
  for (const Tiling::Outputs& tile : tiling_.outputs) {
    output = for_tiles(output, counts_[nest_.output_level()], tile.count(), false, [&](Value* at) {
      tile_vectors_ = tile.vectors;
      lanes_ = tile.lanes;
      body(at);
    });
  }
}

// Writes the tiles of these rows, for the current block of terms.
void Writer::write_tiles(Value* begin, Value* end) {
  if (tiling_.is_packed) {
    for_outputs([&](Value* output) {
      pack(output);
      for_rows(begin, end, [&](Value* row) { write_tile(row, output); });
    });
  } else {
    for_rows(begin, end, [&](Value* row) { for_outputs([&](Value* output) { write_tile(row, output); }); });
  }
}

// Whether the load is of B: of elements that are the same for all rows.
bool Writer::is_packable(llvm::LoadInst* load) {
  const unsigned on = dependence_.of(load);
  return !output_at(load->getPointerOperand()) && on & Dependence::kOutputs &&
         !(on & (Dependence::kRows | Dependence::kOuterRows));
}

// Reserves the thread's stack for packed elements.
void Writer::add_panels() {
  BasicBlock& entry = function_.getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
  for (llvm::LoadInst* const load : nest_.loads) {
    if (!is_packable(load)) continue;
    const uint64_t count = tiling_.terms_of_block * tiling_.outputs.front().count();
    llvm::AllocaInst* const panel = b.CreateAlloca(load->getType(), b.getInt64(count), "panel");
    panel->setAlignment(llvm::Align(64));
    panels_[load] = panel;
  }
  function_.addFnAttr("probe-stack", "inline-asm");  // a panel may be larger than the guard page
}

// Copies the elements of B for the block of terms and the tile of outputs.
void Writer::pack(Value* output) {
  is_packing_ = true;
  output_ = output;
  forget_values();
  add_terms(tiling_.outer_terms);
  is_packing_ = false;
}

// The place of the vector for the current term.
Value* Writer::packed_address(llvm::LoadInst* load, uint64_t vector) {
  Value* term = b_.getInt64(0);
  for (size_t level = tiling_.outer_terms; level < terms_.size(); ++level) {
    Value* const in_block = b_.CreateSub(terms_[level], range_of(level).first);
    term = b_.CreateAdd(b_.CreateMul(term, counts_[first_term_loop() + level]), in_block);
  }
  Value* const at = b_.CreateAdd(b_.CreateMul(term, b_.getInt64(tile_vectors_)), b_.getInt64(vector));
  return b_.CreateGEP(load->getType(), panels_.at(load), b_.CreateMul(at, b_.getInt64(lanes_)));
}

// Writes the loops over blocks of terms from this level inwards, for the rows from `begin` up to `end`.
void Writer::write_blocks(size_t level, Value* begin, Value* end) {
  Value* const zero = b_.getInt64(0);
  if (level < tiling_.outer_terms) {
    for_tiles(zero, counts_[first_term_loop() + level], 1, false, [&](Value* term) {
      terms_[level] = term;
      write_blocks(level + 1, begin, end);
    });
  } else if (level == tiling_.outer_terms && tiling_.block != 0) {
    for_blocks(counts_[first_term_loop() + level], tiling_.block, [&](Value* from, Value* to) {
      block_ = {from, to};
      write_blocks(level + 1, begin, end);
    });
  } else {
    write_tiles(begin, end);
  }
}

// Without a check of the stop word all rows are one group.
void Writer::write_groups() {
  Value* const zero = b_.getInt64(0);
  if (!nest_.stop) {
    write_blocks(0, zero, row_end_);
    return;
  }
  for_blocks(row_end_, tiling_.group, [&](Value* begin, Value* end) {
    write_blocks(0, begin, end);
    check_stop_word(end);
  });
}

// If the work must stop, the old nest goes on with the row `next`: it leaves compiled code after that row.
void Writer::check_stop_word(Value* next) {
  BasicBlock* const go_on = new_block("contraction.row");
  BasicBlock* const stopped = new_block("contraction.stop");
  branch_unless_stopped(b_, go_on, stopped);
  stops_.emplace_back(next, stopped);
  b_.SetInsertPoint(go_on);
}

void Writer::expand_steps() {
  for (Loop* const loop : nest_.loops) {
    for (PHINode& phi : loop->getHeader()->phis()) {
      const auto* const recurrence = evolution_.isSCEVable(phi.getType())
                                         ? llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(&phi))
                                         : nullptr;
      if (!recurrence || !recurrence->isAffine()) continue;  // an unused phi
      const SCEV* const step = recurrence->getStepRecurrence(evolution_);
      if (is_known_before(step, nest_.outermost(), evolution_, expander_)) steps_[step] = expand(step);
    }
  }
}

void Writer::find_outputs() {
  for (llvm::StoreInst* const store : nest_.stores)
    if (!output_at(store->getPointerOperand()))
      outputs_.push_back({store, evolution_.getSCEV(store->getPointerOperand()), {}});
}

Tiling Writer::tiling(uint64_t widest) {
  const auto constant_count = [&](size_t level) -> uint64_t {
    const std::optional<uint64_t> last = constant_of(nest_.last[level]);
    return last ? *last + 1 : 0;
  };
  const SCEV* const last = nest_.last[nest_.output_level()];
  const SCEV* const outputs = evolution_.getAddExpr(last, evolution_.getOne(last->getType()));
  Size size;
  if (nest_.row_loops != 0) size.rows = constant_count(nest_.row_loops - 1);
  if (nest_.row_loops == 2) size.outer_rows = constant_count(0);
  for (size_t level = first_term_loop(); level < nest_.loops.size(); ++level)
    size.terms.push_back(constant_count(level));
  size.outputs = constant_count(nest_.output_level());
  size.output_multiple = uint64_t{1} << std::min(evolution_.getMinTrailingZeros(outputs), 8u);
  size.is_strided = !nest_.strided.empty();
  Registers registers = {.count = target_.getNumberOfRegisters(target_.getRegisterClassForType(true))};
  if (widest != 0) {
    const uint64_t vector_bytes =
        target_.getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector).getFixedValue() / 8;
    registers.lanes = std::max<uint64_t>(vector_bytes / widest, 1);
    const auto has_known_step = [&](const StridedLoad& strided) {
      return is_known_before(strided.step, nest_.outermost(), evolution_, expander_);
    };
    size.is_transposed =
        size.is_strided && llvm::all_of(nest_.strided, [&](const StridedLoad& strided) {
          return strided.is_contiguous_in_terms && has_known_step(strided) &&
                 can_transpose(registers.lanes, strided.load->getType()->getScalarSizeInBits() / 8);
        });
    size.can_pack = llvm::any_of(nest_.loads, [&](llvm::LoadInst* load) { return is_packable(load); }) &&
                    llvm::all_of(nest_.strided, [&](const StridedLoad& strided) {
                      return is_packable(strided.load) && has_known_step(strided);
                    });
  }
  has_squares_ = size.is_transposed;
  const Tiling tiling = choose_tiling(size, registers);
  if (size.is_transposed || tiling.is_packed)
    for (const StridedLoad& strided : nest_.strided) row_steps_[strided.load] = expand(strided.step);
  return tiling;
}

// The old nest runs if the new one may not, or must stop.
void Writer::keep_old_nest(Value* is_new, BasicBlock* start, BasicBlock* end) {
  Loop* const rows = nest_.outermost();
  BasicBlock* const resume = new_block("contraction.old");
  b_.SetInsertPoint(resume);
  PHINode* const first = b_.CreatePHI(b_.getInt64Ty(), 2, "row");
  first->addIncoming(b_.getInt64(0), before_);
  for (PHINode& phi : rows->getHeader()->phis()) {
    phi.setIncomingValueForBlock(before_, advanced(phi, phi.getIncomingValueForBlock(before_), first));
    phi.replaceIncomingBlockWith(before_, resume);
  }
  b_.CreateBr(rows->getHeader());
  const auto to_after = [&](BasicBlock* from) {
    for (PHINode& phi : after_->phis())
      phi.addIncoming(phi.getIncomingValueForBlock(rows->getLoopLatch()), from);
  };
  to_after(end);
  for (const auto& [row, block] : stops_) {
    b_.SetInsertPoint(block);
    b_.CreateCondBr(b_.CreateICmpEQ(row, row_end_), after_, resume);
    first->addIncoming(row, block);
    to_after(block);
  }
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(is_new, start, resume);
  leave_as_it_is(*rows);
}

void Writer::delete_old_nest(Value* entered, BasicBlock* start) {
  for (PHINode& phi : llvm::make_early_inc_range(after_->phis())) {
    phi.replaceAllUsesWith(phi.getIncomingValue(0));
    phi.eraseFromParent();
  }
  before_->getTerminator()->eraseFromParent();
  b_.SetInsertPoint(before_);
  b_.CreateCondBr(entered, start, after_);
  llvm::SmallVector<BasicBlock*, 16> old(nest_.outermost()->blocks());
  evolution_.forgetLoop(nest_.outermost());
  llvm::DeleteDeadBlocks(old);
}

// Whether no two rows share an output.
Value* Writer::are_rows_apart() {
  if (nest_.row_loops == 0) return b_.getTrue();
  Value* const last_output = expand(nest_.last[nest_.output_level()]);
  Value* all = b_.CreateICmpULT(last_output, b_.getInt64(nest_.row_bytes.back().least / nest_.output_bytes));
  if (nest_.row_loops == 2) {
    Value* const last_row = expand(nest_.last[1]);
    const uint64_t rows = nest_.row_bytes[0].least / nest_.row_bytes[1].most;
    all = b_.CreateAnd(all, b_.CreateICmpULT(last_row, b_.getInt64(rows)));
  }
  return all;
}

bool Writer::write() {
  // A strided nest has scalars instead, if it must.
  const uint64_t widest = widest_value(nest_);
  if (widest == 0 && nest_.strided.empty()) return false;
  find_outputs();
  tiling_ = tiling(widest);
  if (tiling_.is_packed) add_panels();
  // Computed before the nest: steps, iteration counts, and whether the body is entered.
  Value* entered = b_.getTrue();
  for (const auto& [condition, wanted] : nest_.entered)
    // Frozen, because the original program may not evaluate this condition.
    entered = b_.CreateAnd(entered, b_.CreateFreeze(wanted ? condition : b_.CreateNot(condition)));
  expand_steps();
  for (const SCEV* last : nest_.last) counts_.push_back(b_.CreateAdd(expand(last), b_.getInt64(1)));
  row_end_ = nest_.row_loops != 0 ? counts_.front() : b_.getInt64(1);
  Value* const is_apart = are_rows_apart();

  BasicBlock* const start = new_block("contraction");
  b_.SetInsertPoint(start);
  terms_.resize(nest_.loops.size() - first_term_loop());
  write_groups();
  BasicBlock* const end = b_.GetInsertBlock();
  b_.CreateBr(after_);
  const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(is_apart);
  if (!nest_.stop && known && known->isOne()) {
    delete_old_nest(entered, start);
  } else {
    b_.SetInsertPoint(before_->getTerminator());
    keep_old_nest(b_.CreateAnd(entered, is_apart), start, end);
  }
  return true;
}

}  // namespace

bool write(const Nest& nest, llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
  return Writer(nest, function, analyses).write();
}

}  // namespace halyard::jit::contraction
