#include "codegen/elementary.h"

#include "codegen/number.h"
#include "vm/elementary/functions.h"

namespace halyard::jit {

// An f64 for the templates of vm/elementary/functions.h, which find these functions by their argument's
// namespace.
using Real = Number;

static Real power_of_two(const Real& nearest) {
  llvm::IRBuilder<>& b = *nearest.builder();
  llvm::Value* const bits = b.CreateBitCast(nearest.value(), b.getInt64Ty());
  return {b, b.CreateBitCast(b.CreateShl(b.CreateAdd(bits, b.getInt64(1023)), 52), b.getDoubleTy())};
}

static Real exponent(const Real& x) {
  // The bits of 2^52 and an integer below 2^52 are those of their sum.
  constexpr double kBits = 0x1p52;
  llvm::IRBuilder<>& b = *x.builder();
  llvm::Value* const shifted = b.CreateLShr(b.CreateBitCast(x.value(), b.getInt64Ty()), 52);
  const Real sum(
      b, b.CreateBitCast(b.CreateOr(shifted, b.getInt64(std::bit_cast<uint64_t>(kBits))), b.getDoubleTy()));
  return sum - (kBits + 1023);
}

static Real bit(const Real& nearest, unsigned i, const Real& then, const Real& other) {
  llvm::IRBuilder<>& b = *nearest.builder();
  llvm::Value* const bits = b.CreateBitCast(nearest.value(), b.getInt64Ty());
  llvm::Value* const is_set = b.CreateICmpNE(b.CreateAnd(bits, uint64_t{1} << i), b.getInt64(0));
  return {b, b.CreateSelect(is_set, then.as(b.getDoubleTy()), other.as(b.getDoubleTy()))};
}

llvm::Value* emit_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::ArrayRef<llvm::Value*> arguments) {
  const auto number = [&](size_t i) -> Real {
    return {builder, builder.CreateFPExt(arguments[i], builder.getDoubleTy())};
  };
  const auto result = [&](const Real& wide, llvm::Value* is_nan, llvm::Value* nan) {
    llvm::Value* const narrow = builder.CreateFPTrunc(wide.value(), builder.getFloatTy());
    return builder.CreateSelect(is_nan, nan, narrow);
  };
  const auto unary = [&](Real (*function)(const Real&)) {
    llvm::Value* const x = arguments[0];
    return result(function(number(0)), builder.CreateFCmpUNO(x, x), builder.CreateFAdd(x, x));
  };
  const auto binary = [&](Real (*function)(const Real&, const Real&), bool one) {
    llvm::Value *const x = arguments[0], *const y = arguments[1];
    const auto constant = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
    llvm::Value* nan = builder.CreateFAdd(x, y);
    if (one)
      nan = builder.CreateSelect(
          builder.CreateOr(builder.CreateFCmpOEQ(x, constant(1)), builder.CreateFCmpOEQ(y, constant(0))),
          constant(1), nan);
    return result(function(number(0), number(1)), builder.CreateFCmpUNO(x, y), nan);
  };
  switch (op) {
#define UNARY(name, function) \
  case vm::Op::name##_f32:    \
    return unary(vm::elementary::function<Real>);
#define BINARY(name, in_c, function, one) \
  case vm::Op::name##_f32:                \
    return binary(vm::elementary::function<Real>, one);
#include "vm/elementary/functions.inc"
#undef UNARY
#undef BINARY
    default:
      return nullptr;
  }
}

}  // namespace halyard::jit
