#include "codegen/contraction/ranges.h"

namespace halyard::jit::contraction {

llvm::Value* are_apart(llvm::IRBuilderBase& b, const Nest::Range& x, const Nest::Range& y,
                       llvm::function_ref<llvm::Value*(const llvm::SCEV*)> expand) {
  const auto is_before = [&](const Nest::Range& first, const Nest::Range& second) {
    llvm::Value* const end = b.CreatePtrAdd(expand(first.last), b.getInt64(first.element_bytes));
    return b.CreateICmpULE(end, expand(second.first));
  };
  return b.CreateOr(is_before(x, y), is_before(y, x));
}

}  // namespace halyard::jit::contraction
