// The values of a tile: as they are for the first lane, and as vectors.
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IntrinsicInst.h>

#include "codegen/contraction/transpose.h"
#include "codegen/contraction/writer.h"

namespace halyard::jit::contraction {

using llvm::Instruction;
using llvm::Loop;
using llvm::PHINode;
using llvm::SCEV;
using llvm::Value;

Value* Writer::counter_of(const Loop* loop, uint64_t row, uint64_t vector) {
  const size_t level = nest_.level_of(loop);
  if (level + 1 < nest_.row_loops) return outer_row_;
  if (level < nest_.row_loops) return b_.CreateNUWAdd(row_, b_.getInt64(row));
  if (level == nest_.output_level())
    return b_.CreateNUWAdd(output_, b_.getInt64(tile_outputs_.first(vector)));
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
  if (!instruction || !nest_.contains(instruction)) return value;
  const Key at = key(value, row, vector);
  if (const auto found = scalars_.find(at); found != scalars_.end()) return found->second;
  auto* const phi = llvm::dyn_cast<PHINode>(instruction);
  Value* const copy =
      phi ? counter_value(phi, row, vector)
          : copy_with(instruction, [&](Value* operand) { return scalar(operand, row, vector); });
  return scalars_[at] = copy;
}

// The bytes from the address in the first row and vector of a tile to that in others; no value if they are
// not constant.
std::optional<int64_t> Writer::distance(Value* pointer, uint64_t row, uint64_t vector) {
  int64_t bytes = 0;
  const SCEV* address = evolution_.getSCEV(pointer);
  while (const auto* const recurrence = llvm::dyn_cast<llvm::SCEVAddRecExpr>(address)) {
    const size_t level = nest_.level_of(recurrence->getLoop());
    const uint64_t count = level == nest_.output_level()  ? tile_outputs_.first(vector)
                           : level + 1 == nest_.row_loops ? row
                                                          : 0;
    const auto* const step = llvm::dyn_cast<llvm::SCEVConstant>(recurrence->getStepRecurrence(evolution_));
    if (count != 0 && (!step || !recurrence->isAffine() || step->getAPInt().getSignificantBits() > 32))
      return {};
    if (count != 0) bytes += static_cast<int64_t>(count) * step->getAPInt().getSExtValue();
    address = recurrence->getStart();
  }
  // Whether the recurrences are all that depends on the counters.
  if (!evolution_.isLoopInvariant(address, nest_.outermost())) return {};
  return nest_.epilogue && !evolution_.isLoopInvariant(address, nest_.epilogue->outermost())
             ? std::nullopt
             : std::optional(bytes);
}

// Rows and vectors share one register for their address, if their distances are constant.
Value* Writer::address(Value* pointer, uint64_t row, uint64_t vector) {
  const std::optional<int64_t> bytes = distance(pointer, row, vector);
  if (!bytes) return scalar(pointer, row, vector);
  Value* const first = scalar(pointer, 0, 0);
  return *bytes == 0 ? first : b_.CreatePtrAdd(first, b_.getInt64(static_cast<uint64_t>(*bytes)));
}

Value* Writer::load(llvm::LoadInst* load, uint64_t row, uint64_t vector) {
  if (const Output* const output = output_read_by(load)) return output->sums[row * tile_vectors_ + vector];
  const bool has_panel = panels_.contains(load);
  const bool is_packed = !is_packing_ && !adds_and_packs_ && has_panel;
  if (!is_packed && lanes_ > 1 && row_steps_.contains(load)) return load_strided(load, row, vector);
  const bool is_vector = dependence_.of(load) & Dependence::kOutputs;
  llvm::Type* const type = is_vector ? type_of(load->getType()) : load->getType();
  if (is_packed) return b_.CreateAlignedLoad(type, packed_address(load, vector), load->getAlign());
  llvm::LoadInst* const made =
      b_.CreateAlignedLoad(type, address(load->getPointerOperand(), row, vector), load->getAlign());
  made->setAAMetadata(load->getAAMetadata());
  if (adds_and_packs_ && has_panel)
    b_.CreateAlignedStore(made, packed_address(load, vector), load->getAlign());
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
  if (!instruction || !nest_.contains(instruction)) return value;
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

// The elements for the outputs of a vector, which are not contiguous.
Value* Writer::load_strided(llvm::LoadInst* load, uint64_t row, uint64_t vector) {
  const auto load_lane = [&](llvm::Type* type, uint64_t lane) {
    Value* const first = address(load->getPointerOperand(), row, vector);
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

// The place of the vector for the current term.
Value* Writer::packed_address(llvm::LoadInst* load, uint64_t vector) {
  Value* const at =
      b_.CreateAdd(b_.CreateMul(number_in_block(), b_.getInt64(tile_vectors_)), b_.getInt64(vector));
  return b_.CreateGEP(load->getType(), panels_.at(load), b_.CreateMul(at, b_.getInt64(lanes_)));
}

}  // namespace halyard::jit::contraction
