// Formulas that build code: a number is code that computes a float, or a constant.
#pragma once

#include <llvm/IR/IRBuilder.h>

namespace halyard::jit {

class Number {
 public:
  Number(double constant) : constant_(constant) {}  // NOLINT(google-explicit-constructor): operands are mixed
  Number(llvm::IRBuilder<>& builder, llvm::Value* value) : builder_(&builder), value_(value) {}

  // Of code; null for a constant.
  llvm::IRBuilder<>* builder() const { return builder_; }
  llvm::Value* value() const { return value_; }
  // As a value of this type; that of code is the number's own.
  llvm::Value* as(llvm::Type* type) const { return value_ ? value_ : llvm::ConstantFP::get(type, constant_); }

 private:
  llvm::IRBuilder<>* builder_ = nullptr;
  llvm::Value* value_ = nullptr;
  double constant_ = 0;
};

// Builds code of both, one of which is code.
template <typename Build>
Number combine(const Number& x, const Number& y, Build build) {
  const Number& code = x.value() ? x : y;
  llvm::Type* const type = code.value()->getType();
  return {*code.builder(), build(*code.builder(), x.as(type), y.as(type))};
}

inline Number operator+(const Number& x, const Number& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) { return b.CreateFAdd(l, r); });
}
inline Number operator-(const Number& x, const Number& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) { return b.CreateFSub(l, r); });
}
inline Number operator*(const Number& x, const Number& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) { return b.CreateFMul(l, r); });
}
inline Number operator/(const Number& x, const Number& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) { return b.CreateFDiv(l, r); });
}

// x < y ? then : other; `other` if x or y is NaN. One of x and y is code.
inline Number less(const Number& x, const Number& y, const Number& then, const Number& other) {
  return combine(x, y, [&](auto& b, llvm::Value* l, llvm::Value* r) {
    return b.CreateSelect(b.CreateFCmpOLT(l, r), then.as(l->getType()), other.as(l->getType()));
  });
}

// x without its sign.
inline Number magnitude(const Number& x) {
  return {*x.builder(), x.builder()->CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x.value())};
}

// x with the sign of y.
inline Number copy_sign(const Number& x, const Number& y) {
  return combine(x, y, [](auto& b, llvm::Value* l, llvm::Value* r) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, l, r);
  });
}

}  // namespace halyard::jit
