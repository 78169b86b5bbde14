#include "codegen/elementary.h"

#include "vm/decode/elementary.h"

namespace halyard::jit {

namespace {

// An f64 for the templates of vm/decode/elementary.h: code that computes it, or a constant.
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
  llvm::IRBuilder<>& b = x.builder() ? *x.builder() : *y.builder();
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

llvm::Value* emit_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::Value* x) {
  const auto compute = [&](Real (*function)(Real)) {
    llvm::Value* const wide = function({builder, builder.CreateFPExt(x, builder.getDoubleTy())}).in(builder);
    llvm::Value* const result = builder.CreateFPTrunc(wide, x->getType());
    return builder.CreateSelect(builder.CreateFCmpUNO(x, x), builder.CreateFAdd(x, x), result);
  };
  switch (op) {
    case vm::Op::exp_f32:
      return compute(vm::elementary::exponential<Real>);
    case vm::Op::tanh_f32:
      return compute(vm::elementary::hyperbolic_tangent<Real>);
    case vm::Op::erf_f32:
      return compute(vm::elementary::error_function<Real>);
    default:
      return nullptr;
  }
}

}  // namespace halyard::jit
