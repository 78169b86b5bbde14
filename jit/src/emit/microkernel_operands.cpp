#include "emit/microkernel_operands.h"

#include <bit>
#include <cstdint>

#include "emit/kernel_objects.h"

namespace halyard::jit {

namespace {

llvm::Value* buffer_field(LoopWriter& w, llvm::Value* buffer, uint64_t offset, llvm::Type* type) {
  return w.b.CreateLoad(type, w.at(buffer, w.i64(offset)));
}

}  // namespace

// A buffer of 0 bytes counts as writable: nothing is written to it.
void OperandChecks::writable(Value* buffer) {
  const halyard_jit_layout_t& layout = kernel_object_layout();
  Value* const length = buffer_field(w_, buffer, layout.buffer_length, w_.b.getInt64Ty());
  Value* const writable = buffer_field(w_, buffer, layout.buffer_mutable_length, w_.b.getInt64Ty());
  w_.return_unless(w_.b.CreateICmpEQ(length, writable), kPermissionDenied);
}

void OperandChecks::sizes(Value* size0, Value* size1) {
  for (Value* const size : {size0, size1})
    w_.return_unless(w_.b.CreateICmpULE(size, w_.i64(UINT32_MAX)), kInvalidArgument);
}

void OperandChecks::stride(Value* stride) {
  w_.return_unless(w_.b.CreateICmpULT(stride, w_.i64(UINT32_MAX)), kInvalidArgument);
}

OperandChecks::Value* OperandChecks::with_overflow(llvm::Intrinsic::ID operation, Value* x, Value* y,
                                                   Value*& overflows) {
  Value* const both = w_.b.CreateBinaryIntrinsic(operation, x, y);
  Value* const over = w_.b.CreateExtractValue(both, 1);
  overflows = overflows ? w_.b.CreateOr(overflows, over) : over;
  return w_.b.CreateExtractValue(both, 0);
}

OperandChecks::Value* OperandChecks::saturated_product(Value* x, Value* y) {
  Value* over = nullptr;
  Value* const found = with_overflow(llvm::Intrinsic::umul_with_overflow, x, y, over);
  return w_.b.CreateSelect(over, w_.i64(UINT64_MAX), found);
}

OperandChecks::Value* OperandChecks::range(Value* buffer, Value* offset, Value* last, Value* too_far,
                                           Value* is_empty, uint64_t width) {
  const halyard_jit_layout_t& layout = kernel_object_layout();
  Value* end = with_overflow(llvm::Intrinsic::uadd_with_overflow, offset, last, too_far);
  end = with_overflow(llvm::Intrinsic::uadd_with_overflow, end, w_.i64(1), too_far);
  const auto shift = static_cast<uint64_t>(std::countr_zero(width));
  Value* const elements =
      w_.b.CreateLShr(buffer_field(w_, buffer, layout.buffer_length, w_.b.getInt64Ty()), shift);
  Value* const inside = w_.b.CreateAnd(w_.b.CreateNot(too_far), w_.b.CreateICmpULE(end, elements));
  w_.return_unless(w_.b.CreateOr(is_empty, inside), kOutOfRange);
  return w_.at(buffer_field(w_, buffer, layout.buffer_data, w_.b.getPtrTy()), w_.b.CreateShl(offset, shift));
}

OperandChecks::Value* OperandChecks::matrix(Value* buffer, Value* offset, Value* stride0, Value* stride1,
                                            Value* size0, Value* size1, uint64_t width) {
  sizes(size0, size1);
  stride(stride0);
  stride(stride1);
  // Products of two numbers of 32 bits.
  Value* const rows = w_.product(w_.b.CreateSub(size0, w_.i64(1)), stride0);
  Value* const columns = w_.product(w_.b.CreateSub(size1, w_.i64(1)), stride1);
  Value* too_far = nullptr;
  Value* const last = with_overflow(llvm::Intrinsic::uadd_with_overflow, rows, columns, too_far);
  Value* const is_empty = w_.b.CreateOr(w_.b.CreateIsNull(size0), w_.b.CreateIsNull(size1));
  return range(buffer, offset, last, too_far, is_empty, width);
}

OperandChecks::Value* OperandChecks::rows(Value* buffer, Value* offset, Value* rows, Value* row_elements,
                                          Value* stride_of_rows, uint64_t width) {
  stride(stride_of_rows);
  Value* const before = w_.product(w_.b.CreateSub(rows, w_.i64(1)), stride_of_rows);
  Value* too_far = nullptr;
  Value* const last = with_overflow(llvm::Intrinsic::uadd_with_overflow, before,
                                    w_.b.CreateSub(row_elements, w_.i64(1)), too_far);
  Value* const is_empty = w_.b.CreateOr(w_.b.CreateIsNull(rows), w_.b.CreateIsNull(row_elements));
  return range(buffer, offset, last, too_far, is_empty, width);
}

}  // namespace halyard::jit
