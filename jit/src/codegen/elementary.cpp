#include "codegen/elementary.h"

#include "vm/elementary/functions.h"

namespace halyard::jit {

namespace {

// An f64 for the templates of vm/elementary/functions.h: code that computes it, or a constant.
class Real {
 public:
  Real(double constant) : constant_(constant) {}  // NOLINT(google-explicit-constructor): operands are mixed
  Real(llvm::IRBuilder<>& builder, llvm::Value* value) : builder_(&builder), value_(value) {}

  llvm::IRBuilder<>* builder() const { return builder_; }
  llvm::Value* in(llvm::IRBuilder<>& builder) const {
    return value_ ? value_ : llvm::ConstantFP::get(builder.getDoubleTy(), constant_);
  }

 private:
  llvm::IRBuilder<>* builder_ = nullptr;
  llvm::Value* value_ = nullptr;  // null for a constant
  double constant_ = 0;
};

// One of the two is code.
template <typename Combine>
Real combine(const Real& x, const Real& y, Combine combine) {
  llvm::IRBuilder<>& b =
      *(x.builder() ? x.builder() : y.builder());  // NOLINT(clang-analyzer-core.NullDereference)
  return {b, combine(b, x.in(b), y.in(b))};
}
#define OPERATOR(symbol, Create)                                                                  \
  Real operator symbol(const Real& x, const Real& y) {                                            \
    return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) { return b.Create(l, r); }); \
  }
OPERATOR(+, CreateFAdd)
OPERATOR(-, CreateFSub)
OPERATOR(*, CreateFMul)
OPERATOR(/, CreateFDiv)
#undef OPERATOR

Real power_of_two(const Real& nearest) {
  llvm::IRBuilder<>& b = *nearest.builder();
  llvm::Value* const bits = b.CreateBitCast(nearest.in(b), b.getInt64Ty());
  return {b, b.CreateBitCast(b.CreateShl(b.CreateAdd(bits, b.getInt64(1023)), 52), b.getDoubleTy())};
}

Real exponent(const Real& x) {
  // The bits of 2^52 and an integer below 2^52 are those of their sum.
  constexpr double kBits = 0x1p52;
  llvm::IRBuilder<>& b = *x.builder();
  llvm::Value* const shifted = b.CreateLShr(b.CreateBitCast(x.in(b), b.getInt64Ty()), 52);
  const Real sum(
      b, b.CreateBitCast(b.CreateOr(shifted, b.getInt64(std::bit_cast<uint64_t>(kBits))), b.getDoubleTy()));
  return sum - (kBits + 1023);
}

Real bit(const Real& nearest, unsigned i, const Real& then, const Real& other) {
  llvm::IRBuilder<>& b = *nearest.builder();
  llvm::Value* const bits = b.CreateBitCast(nearest.in(b), b.getInt64Ty());
  llvm::Value* const is_set = b.CreateICmpNE(b.CreateAnd(bits, uint64_t{1} << i), b.getInt64(0));
  return {b, b.CreateSelect(is_set, then.in(b), other.in(b))};
}

Real less(const Real& x, const Real& y, const Real& then, const Real& other) {
  return combine(x, y, [&](auto& b, llvm::Value* l, llvm::Value* r) {
    return b.CreateSelect(b.CreateFCmpOLT(l, r), then.in(b), other.in(b));
  });
}

Real magnitude(const Real& x) {
  return {*x.builder(), x.builder()->CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.in(*x.builder()))};
}

Real copy_sign(const Real& x, const Real& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, l, r);
  });
}

}  // namespace

llvm::Value* emit_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::ArrayRef<llvm::Value*> arguments) {
  const auto number = [&](size_t i) -> Real {
    return {builder, builder.CreateFPExt(arguments[i], builder.getDoubleTy())};
  };
  const auto result = [&](const Real& wide, llvm::Value* is_nan, llvm::Value* nan) {
    llvm::Value* const narrow = builder.CreateFPTrunc(wide.in(builder), builder.getFloatTy());
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
