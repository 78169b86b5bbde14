#include "codegen/written_buffers.h"

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Metadata.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include <utility>

#include "codegen/translate.h"

namespace halyard::jit {

namespace {

using llvm::Instruction;
using llvm::Value;

constexpr char kTracked[] = "halyard.tracked_buffers";

uint32_t number(const llvm::MDNode& node, unsigned operand) {
  return static_cast<uint32_t>(
      llvm::mdconst::extract<llvm::ConstantInt>(node.getOperand(operand))->getZExtValue());
}

// Whether the address is in a register frame, in globals or on the stack: not in a buffer.
bool is_outside_buffers(const Value* address) {
  const Value* const object = llvm::getUnderlyingObject(address, 0);
  return llvm::isa<llvm::Argument>(object) || llvm::isa<llvm::AllocaInst>(object);
}

// A place that is reached whenever the instruction may run, and as seldom as possible: before the outermost
// loop all of whose iterations begin the loops inside.
Instruction* place_before(Instruction& instruction, const llvm::LoopInfo& loops,
                          const llvm::DominatorTree& order) {
  Instruction* place = &instruction;
  for (const llvm::Loop* loop = loops.getLoopFor(instruction.getParent()); loop;
       loop = loop->getParentLoop()) {
    llvm::BasicBlock* const before = loop->getLoopPreheader();
    if (!before) return place;
    const llvm::BasicBlock* const latch = loop->getLoopLatch();
    if (place != &instruction && (!latch || !order.dominates(place->getParent(), latch))) return place;
    place = before->getTerminator();
  }
  return place;
}

// Visits the registers with tracked buffers that the instruction may write to. A function that it calls, or
// that it gives to the host to call, is a part of this one: a group of rows of a contraction.
template <typename Visit>
void for_each_written(Instruction& instruction, const TrackedBuffers& tracked, const Visit& visit) {
  if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) {
    for (Value* const operand : call->operands())
      if (auto* const part = llvm::dyn_cast<llvm::Function>(operand))
        for (Instruction& inside : llvm::instructions(part)) for_each_written(inside, tracked, visit);
  }
  auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
  if (!store || is_outside_buffers(store->getPointerOperand())) return;
  // A pass that has replaced the store may have lost the metadata: then it may write to each of them.
  const llvm::MDNode* const node = store->getMetadata(kStoredRegister);
  if (node && node->getNumOperands() == 0) return;
  for (const uint32_t ref : tracked.registers)
    if (!node || number(*node, 0) == ref) visit(ref);
}

void note_written(const TrackedBuffers& tracked, uint32_t ref, Instruction* place, llvm::Function& function) {
  llvm::IRBuilder<> b(place);
  const auto member = [&](Value* object, uint64_t offset) {
    return b.CreateConstInBoundsGEP1_64(b.getInt8Ty(), object, offset);
  };
  Value* const object =
      b.CreateLoad(b.getPtrTy(), b.CreateConstInBoundsGEP1_64(b.getPtrTy(), function.getArg(1), ref));
  place = llvm::SplitBlockAndInsertIfThen(b.CreateIsNotNull(object), place, false);
  b.SetInsertPoint(place);
  Value* const type = b.CreateLoad(b.getPtrTy(), member(object, tracked.type_offset));
  place = llvm::SplitBlockAndInsertIfThen(b.CreateICmpEQ(type, tracked.type), place, false);
  b.SetInsertPoint(place);
  b.CreateStore(b.getInt64(UINT64_MAX), member(object, tracked.written_offset));
}

}  // namespace

void TrackedBuffers::add_to(llvm::Function& function) const {
  if (registers.empty()) return;
  llvm::LLVMContext& context = function.getContext();
  llvm::Type* const i32 = llvm::Type::getInt32Ty(context);
  const auto constant = [&](uint32_t value) {
    return llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(i32, value));
  };
  llvm::SmallVector<llvm::Metadata*, 8> parts = {llvm::ValueAsMetadata::get(type), constant(type_offset),
                                                 constant(written_offset)};
  for (const uint32_t ref : registers) parts.push_back(constant(ref));
  function.setMetadata(kTracked, llvm::MDNode::get(context, parts));
}

std::optional<TrackedBuffers> TrackedBuffers::of(const llvm::Function& function) {
  const llvm::MDNode* const node = function.getMetadata(kTracked);
  if (!node) return std::nullopt;
  TrackedBuffers tracked{.type = llvm::cast<llvm::ValueAsMetadata>(node->getOperand(0))->getValue(),
                         .type_offset = number(*node, 1),
                         .written_offset = number(*node, 2)};
  for (unsigned i = 3; i < node->getNumOperands(); ++i) tracked.registers.push_back(number(*node, i));
  return tracked;
}

llvm::PreservedAnalyses NoteWrittenBuffers::run(llvm::Function& function,
                                                llvm::FunctionAnalysisManager& analyses) {
  const std::optional<TrackedBuffers> tracked = TrackedBuffers::of(function);
  if (!tracked) return llvm::PreservedAnalyses::all();
  const llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
  const llvm::DominatorTree& order = analyses.getResult<llvm::DominatorTreeAnalysis>(function);
  llvm::SetVector<std::pair<Instruction*, uint32_t>> places;
  for (llvm::BasicBlock& block : function) {
    for (Instruction& instruction : block) {
      for_each_written(instruction, *tracked,
                       [&](uint32_t ref) { places.insert({place_before(instruction, loops, order), ref}); });
    }
  }
  for (const auto& [place, ref] : places) note_written(*tracked, ref, place, function);
  return places.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
}

}  // namespace halyard::jit
