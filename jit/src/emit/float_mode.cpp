#include "emit/float_mode.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>

namespace halyard::jit {

namespace {

llvm::Triple triple_of(const llvm::IRBuilderBase& b) {
  return llvm::Triple(b.GetInsertBlock()->getModule()->getTargetTriple());
}

llvm::Value* room(llvm::IRBuilderBase& b) {
  const llvm::IRBuilderBase::InsertPointGuard guard(b);
  llvm::BasicBlock& entry = b.GetInsertBlock()->getParent()->getEntryBlock();
  b.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  return b.CreateAlloca(b.getInt32Ty());
}

}  // namespace

FloatMode::FloatMode(llvm::IRBuilderBase& b, Denormals denormals) {
  const llvm::Triple triple = triple_of(b);
  const bool flushes = denormals == Denormals::flushed;
  if (triple.isX86()) {
    // MXCSR: exceptions masked; flush to zero, denormals are zero.
    before_ = room(b);
    llvm::Value* const during = room(b);
    b.CreateStore(b.getInt32(0x1F80 | (flushes ? 0x8040 : 0)), during);
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {before_});
    b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {during});
  } else if (triple.isAArch64()) {
    // FPCR: FZ, FZ16.
    before_ = b.CreateIntrinsic(llvm::Intrinsic::aarch64_get_fpcr, {}, {});
    b.CreateIntrinsic(llvm::Intrinsic::aarch64_set_fpcr, {}, {b.getInt64(flushes ? 0x01080000 : 0)});
  }
}

void FloatMode::restore(llvm::IRBuilderBase& b) const {
  if (!before_) return;
  const llvm::Intrinsic::ID set = triple_of(b).isX86()
                                      ? llvm::Intrinsic::ID(llvm::Intrinsic::x86_sse_ldmxcsr)
                                      : llvm::Intrinsic::ID(llvm::Intrinsic::aarch64_set_fpcr);
  b.CreateIntrinsic(set, {}, {before_});
}

bool has_floats(const llvm::Function& function) {
  const auto is_float = [](const llvm::Type* type) { return type->isFPOrFPVectorTy(); };
  for (const llvm::BasicBlock& block : function)
    for (const llvm::Instruction& each : block)
      if (is_float(each.getType()) || llvm::any_of(each.operands(), [&](const llvm::Use& operand) {
            return is_float(operand->getType());
          }))
        return true;
  return false;
}

}  // namespace halyard::jit
