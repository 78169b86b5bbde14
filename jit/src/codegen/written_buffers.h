// Notes in buffers of the function's own that they are written, before the loops whose stores are left after
// contractions are tiled. Buffers without such stores need not be cleared when their memory is used again.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/Value.h>

#include <cstdint>
#include <optional>

namespace halyard::jit {

// The registers with tracked buffers (OwnBuffers::is_tracked), as metadata of a function.
struct TrackedBuffers {
  llvm::Value* type = nullptr;  // of buffers
  uint32_t type_offset = 0;     // of an object
  uint32_t written_offset = 0;  // of a buffer
  llvm::SmallVector<uint32_t, 4> registers;

  void add_to(llvm::Function& function) const;
  static std::optional<TrackedBuffers> of(const llvm::Function& function);
};

struct NoteWrittenBuffers : llvm::PassInfoMixin<NoteWrittenBuffers> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace halyard::jit
