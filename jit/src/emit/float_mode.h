// The floating-point mode of the thread in emitted code: rounds to nearest, does not trap, and keeps denormal
// numbers or flushes them to zero. Processors other than x86-64 and arm64 have one mode, which keeps them.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace halyard::jit {

enum class Denormals { kept, flushed };

class FloatMode {
 public:
  // Sets the mode, with the builder that writes the function. LLVM moves floating-point instructions across
  // this, so those that need the mode must be in a function that is called and not inlined.
  FloatMode(llvm::IRBuilderBase& builder, Denormals denormals);
  // Sets the mode from before. Several paths may each do so.
  void restore(llvm::IRBuilderBase& builder) const;

 private:
  llvm::Value* before_ = nullptr;  // the mode, or on x86-64 its place; null if there is but one
};

// Whether the function computes with floating-point numbers.
bool has_floats(const llvm::Function& function);

}  // namespace halyard::jit
