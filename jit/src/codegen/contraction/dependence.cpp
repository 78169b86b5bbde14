#include "codegen/contraction/dependence.h"

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace halyard::jit::contraction {

namespace {

using llvm::Instruction;
using llvm::PHINode;
using llvm::Value;

class Widest {
 public:
  explicit Widest(const Nest& nest) : nest_(nest), dependence_(nest) {}
  uint64_t of_stores() {
    for (llvm::StoreInst* const store : nest_.stores)
      if (!visit(store->getValueOperand())) return 0;
    return std::max(widest_, nest_.output_bytes);
  }

 private:
  bool visit(Value* value) {
    auto* const instruction = llvm::dyn_cast<Instruction>(value);
    if (!instruction || !(dependence_.of(value) & Dependence::kOutputs)) return true;
    if (!visited_.insert(value).second) return true;
    llvm::Type* const type = value->getType();
    if (!type->isIntegerTy() && !type->isFloatingPointTy()) return false;
    widest_ = std::max<uint64_t>(widest_, (type->getScalarSizeInBits() + 7) / 8);
    if (llvm::isa<llvm::LoadInst>(instruction)) return true;
    if (llvm::isa<PHINode>(instruction))
      return type->isIntegerTy() && instruction->getParent() == nest_.outputs()->getHeader();
    if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(instruction)) {
      if (!llvm::isTriviallyVectorizable(call->getIntrinsicID())) return false;
      for (unsigned i = 0; i < call->arg_size(); ++i)
        if (llvm::isVectorIntrinsicWithScalarOpAtArg(call->getIntrinsicID(), i)) return false;
      return std::all_of(call->arg_begin(), call->arg_end(),
                         [&](const llvm::Use& use) { return visit(use); });
    }
    return (llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst,
                      llvm::SelectInst, llvm::FreezeInst>(instruction)) &&
           llvm::all_of(instruction->operands(), [&](Value* operand) { return visit(operand); });
  }

  const Nest& nest_;
  Dependence dependence_;
  llvm::SmallPtrSet<Value*, 32> visited_;
  uint64_t widest_ = 0;
};

}  // namespace

uint64_t widest_value(const Nest& nest) { return Widest(nest).of_stores(); }

}  // namespace halyard::jit::contraction
