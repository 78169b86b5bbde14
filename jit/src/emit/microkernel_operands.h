// The checks of microkernels' operands, as drivers/local/vmvx/microkernels.cpp has them: each returns from
// the function with the status that fails there.
#pragma once

#include "emit/loop_writer.h"
#include "emit/status_codes.h"

namespace halyard::jit {

class OperandChecks {
 public:
  using Value = llvm::Value;

  explicit OperandChecks(LoopWriter& writer) : w_(writer) {}

  void writable(Value* buffer);
  // Sizes and strides of at most 32 bits.
  void sizes(Value* size0, Value* size1);
  void stride(Value* stride);
  // The address of a matrix whose elements have `width` bytes. If a size is 0 it may be anywhere.
  Value* matrix(Value* buffer, Value* offset, Value* stride0, Value* stride1, Value* size0, Value* size1,
                uint64_t width);
  // The same of `rows` rows of contiguous elements.
  Value* rows(Value* buffer, Value* offset, Value* rows, Value* row_elements, Value* stride, uint64_t width);
  // x * y, or 2^64 - 1 if it is larger.
  Value* saturated_product(Value* x, Value* y);

 private:
  // The address of an element if the one `last` elements after it is within the buffer, too, or if
  // `is_empty`.
  Value* range(Value* buffer, Value* offset, Value* last, Value* too_far, Value* is_empty, uint64_t width);
  Value* with_overflow(llvm::Intrinsic::ID operation, Value* x, Value* y, Value*& overflows);

  LoopWriter& w_;
};

}  // namespace halyard::jit
