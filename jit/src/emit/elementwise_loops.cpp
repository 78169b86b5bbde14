#include "emit/elementwise_loops.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "emit/microkernel_operands.h"

namespace halyard::jit {

namespace {

using llvm::Value;

// ---- Numbers

Value* as_f32(LoopWriter& w, Value* bits) { return w.b.CreateBitCast(bits, w.b.getFloatTy()); }
Value* bits_of(LoopWriter& w, Value* number) { return w.b.CreateBitCast(number, w.b.getInt32Ty()); }
Value* f32(LoopWriter& w, double value) { return llvm::ConstantFP::get(w.b.getFloatTy(), value); }
Value* f64(LoopWriter& w, double value) { return llvm::ConstantFP::get(w.b.getDoubleTy(), value); }
Value* i32(LoopWriter& w, uint32_t value) { return w.b.getInt32(value); }

// Zero of the same sign instead of a denormal number, for processors that do not flush them.
Value* flushed(LoopWriter& w, Value* bits, const VectorSet& vectors) {
  if (vectors.flushes) return as_f32(w, bits);
  Value* const magnitude = w.b.CreateAnd(bits, i32(w, 0x7FFFFFFF));
  Value* const sign = w.b.CreateAnd(bits, i32(w, 0x80000000));
  return as_f32(w, w.b.CreateSelect(w.b.CreateICmpULT(magnitude, i32(w, 0x00800000)), sign, bits));
}

Value* multiply_add(LoopWriter& w, Value* x, Value* y, Value* sum, bool fuses) {
  if (fuses) return w.b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, sum});
  return w.b.CreateFAdd(w.b.CreateFMul(x, y), sum);
}

template <size_t kTerms>
Value* polynomial(LoopWriter& w, Value* x, const std::array<double, kTerms>& coefficients, bool fuses) {
  Value* sum = f64(w, coefficients[0]);
  for (size_t i = 1; i < kTerms; ++i) sum = multiply_add(w, sum, x, f64(w, coefficients[i]), fuses);
  return sum;
}

// ---- Functions with two inputs

template <llvm::Instruction::BinaryOps kOperation>
Value* float_operation(LoopWriter& w, Value* x, Value* y, const VectorSet&) {
  return bits_of(w, w.b.CreateBinOp(kOperation, as_f32(w, x), as_f32(w, y)));
}
template <llvm::Instruction::BinaryOps kOperation>
Value* integer_operation(LoopWriter& w, Value* x, Value* y, const VectorSet&) {
  return w.b.CreateBinOp(kOperation, x, y);
}
template <llvm::Instruction::BinaryOps kOperation>
Value* shift(LoopWriter& w, Value* x, Value* y, const VectorSet&) {
  return w.b.CreateBinOp(kOperation, x, w.b.CreateAnd(y, i32(w, 31)));
}
// INT_MIN / -1 wraps.
Value* signed_quotient(LoopWriter& w, Value* x, Value* y, const VectorSet&) {
  Value* const negates = w.b.CreateICmpEQ(y, i32(w, UINT32_MAX));
  Value* const quotient = w.b.CreateSDiv(x, w.b.CreateSelect(negates, i32(w, 1), y));
  return w.b.CreateSelect(negates, w.b.CreateNeg(x), quotient);
}

// ---- Functions with one input

Value* absolute(LoopWriter& w, Value* x, Value*, const VectorSet&) {
  return w.b.CreateAnd(x, i32(w, 0x7FFFFFFF));
}
Value* negated(LoopWriter& w, Value* x, Value*, const VectorSet&) {
  return w.b.CreateXor(x, i32(w, 0x80000000));
}
Value* leading_zeros(LoopWriter& w, Value* x, Value*, const VectorSet&) {
  return w.b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, x, w.b.getFalse());
}
template <llvm::Intrinsic::ID kRounding>
Value* rounded(LoopWriter& w, Value* x, Value*, const VectorSet& vectors) {
  return bits_of(w, w.b.CreateUnaryIntrinsic(kRounding, flushed(w, x, vectors)));
}
Value* reciprocal_root(LoopWriter& w, Value* x, Value*, const VectorSet& vectors) {
  Value* const root = w.b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, flushed(w, x, vectors));
  return bits_of(w, w.b.CreateFDiv(f32(w, 1), root));
}

// e^x = 2^n * e^r with |r| <= ln(2) / 2, in double precision.
Value* exponential(LoopWriter& w, Value* bits, Value*, const VectorSet& vectors) {
  const bool fuses = vectors.fuses;
  Value* const x = flushed(w, bits, vectors);
  Value* const not_small = w.b.CreateSelect(w.b.CreateFCmpOGT(x, f32(w, -150)), x, f32(w, -150));
  Value* const bounded = w.b.CreateSelect(w.b.CreateFCmpOLT(not_small, f32(w, 100)), not_small, f32(w, 100));
  Value* const exact = w.b.CreateFPExt(bounded, w.b.getDoubleTy());
  constexpr double kRounder =
      0x1.8p52 + 1023;  // its sum with n has n and the bias of exponents in the low bits
  Value* const nearest = multiply_add(w, exact, f64(w, 0x1.71547652b82fep+0), f64(w, kRounder), fuses);
  Value* const n = w.b.CreateFSub(nearest, f64(w, kRounder));
  Value* const r = fuses ? multiply_add(w, w.b.CreateFNeg(n), f64(w, 0x1.62e42fefa39efp-1), exact, true)
                         : w.b.CreateFSub(exact, w.b.CreateFMul(n, f64(w, 0x1.62e42fefa39efp-1)));
  constexpr std::array<double, 11> kSeries = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                                              1.0 / 720,     1.0 / 120,    1.0 / 24,    1.0 / 6,
                                              1.0 / 2,       1.0,          1.0};
  Value* const power =
      w.b.CreateBitCast(w.b.CreateShl(w.b.CreateBitCast(nearest, w.b.getInt64Ty()), 52), w.b.getDoubleTy());
  Value* const result =
      w.b.CreateFPTrunc(w.b.CreateFMul(polynomial(w, r, kSeries, fuses), power), w.b.getFloatTy());
  return bits_of(w, w.b.CreateSelect(w.b.CreateFCmpUNO(x, x), x, result));
}

// x = 2^e * (1 + f), with 1 + f between sqrt(1/2) and sqrt(2); ln(1 + f) = 2 artanh(s) with s = f / (2 + f).
Value* logarithm(LoopWriter& w, Value* bits, Value*, const VectorSet& vectors) {
  const bool fuses = vectors.fuses;
  Value* const x = flushed(w, bits, vectors);
  Value* const of_x = bits_of(w, x);
  Value* const e = w.b.CreateAShr(w.b.CreateSub(of_x, i32(w, 0x3F3504F3)), 23);
  Value* const mantissa = as_f32(w, w.b.CreateSub(of_x, w.b.CreateShl(e, 23)));
  Value* const f = w.b.CreateFPExt(w.b.CreateFSub(mantissa, f32(w, 1)), w.b.getDoubleTy());
  Value* const s = w.b.CreateFDiv(f, w.b.CreateFAdd(f, f64(w, 2)));
  constexpr std::array<double, 8> kSeries = {2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9,
                                             2.0 / 7,  2.0 / 5,  2.0 / 3,  2.0};
  Value* const fraction = w.b.CreateFMul(s, polynomial(w, w.b.CreateFMul(s, s), kSeries, fuses));
  Value* const exact =
      multiply_add(w, w.b.CreateSIToFP(e, w.b.getDoubleTy()), f64(w, 0x1.62e42fefa39efp-1), fraction, fuses);
  Value* result = bits_of(w, w.b.CreateFPTrunc(exact, w.b.getFloatTy()));
  Value* const infinity = i32(w, 0x7F800000);
  Value* const magnitude = w.b.CreateAnd(of_x, i32(w, 0x7FFFFFFF));
  result = w.b.CreateSelect(w.b.CreateICmpEQ(of_x, infinity), infinity, result);
  result = w.b.CreateSelect(w.b.CreateFCmpOLT(x, f32(w, 0)), i32(w, 0x7FFFFFFF), result);
  result = w.b.CreateSelect(w.b.CreateICmpULT(magnitude, i32(w, 0x00800000)), i32(w, 0xFF800000), result);
  return w.b.CreateSelect(w.b.CreateFCmpUNO(x, x), of_x, result);
}

Value* itself(LoopWriter&, Value* x, Value*, const VectorSet&) { return x; }

using Operation = llvm::Instruction;
constexpr ElementFunction kElementFunctions[] = {
    {"add.2d.f32", 2, 4, true, false, float_operation<Operation::FAdd>},
    {"sub.2d.f32", 2, 4, true, false, float_operation<Operation::FSub>},
    {"mul.2d.f32", 2, 4, true, false, float_operation<Operation::FMul>},
    {"div.2d.f32", 2, 4, true, false, float_operation<Operation::FDiv>},
    {"add.2d.i32", 2, 4, false, false, integer_operation<Operation::Add>},
    {"sub.2d.i32", 2, 4, false, false, integer_operation<Operation::Sub>},
    {"mul.2d.i32", 2, 4, false, false, integer_operation<Operation::Mul>},
    {"divs.2d.i32", 2, 4, false, true, signed_quotient},
    {"divu.2d.i32", 2, 4, false, true, integer_operation<Operation::UDiv>},
    {"and.2d.i32", 2, 4, false, false, integer_operation<Operation::And>},
    {"or.2d.i32", 2, 4, false, false, integer_operation<Operation::Or>},
    {"xor.2d.i32", 2, 4, false, false, integer_operation<Operation::Xor>},
    {"shl.2d.i32", 2, 4, false, false, shift<Operation::Shl>},
    {"shrs.2d.i32", 2, 4, false, false, shift<Operation::AShr>},
    {"shru.2d.i32", 2, 4, false, false, shift<Operation::LShr>},
    {"abs.2d.f32", 1, 4, true, false, absolute},
    {"ceil.2d.f32", 1, 4, true, false, rounded<llvm::Intrinsic::ceil>},
    {"exp.2d.f32", 1, 4, true, false, exponential},
    {"floor.2d.f32", 1, 4, true, false, rounded<llvm::Intrinsic::floor>},
    {"log.2d.f32", 1, 4, true, false, logarithm},
    {"neg.2d.f32", 1, 4, true, false, negated},
    {"rsqrt.2d.f32", 1, 4, true, false, reciprocal_root},
    {"ctlz.2d.i32", 1, 4, false, false, leading_zeros},
    {"copy.2d.x8", 1, 1, false, false, itself},
    {"copy.2d.x16", 1, 2, false, false, itself},
    {"copy.2d.x32", 1, 4, false, false, itself},
    {"copy.2d.x64", 1, 8, false, false, itself},
};

// ---- The loops. Their order, row by row, defines the results for all strides and overlaps.

struct Matrix {
  Value* data;
  Value* stride0;
  Value* stride1;
};

Value* element_at(LoopWriter& w, const Matrix& matrix, Value* row, Value* column, uint32_t width) {
  Value* const index = w.sum(w.product(row, matrix.stride0), w.product(column, matrix.stride1));
  return w.at(matrix.data, w.product(index, w.i64(width)));
}

void write_rows(LoopWriter& w, const ElementFunction& function, llvm::ArrayRef<Matrix> inputs,
                const Matrix& out, Value* size0, Value* size1, const VectorSet& vectors) {
  llvm::Type* const type = w.b.getIntNTy(8 * function.width);
  w.for_each(size0, [&](Value* row) {
    w.for_each(size1, [&](Value* column) {
      Value* const x = w.load(type, element_at(w, inputs[0], row, column, function.width));
      Value* const y =
          inputs.size() > 1 ? w.load(type, element_at(w, inputs[1], row, column, function.width)) : nullptr;
      if (function.fails_at_zero) w.return_unless(w.b.CreateIsNotNull(y), kInvalidArgument);
      w.store(function.result(w, x, y, vectors), element_at(w, out, row, column, function.width));
    });
  });
}

}  // namespace

const ElementFunction* find_element_function(std::string_view name) {
  const auto* const found = std::ranges::find(kElementFunctions, name, &ElementFunction::name);
  return found == std::end(kElementFunctions) ? nullptr : found;
}

void write_elementwise(LoopWriter& w, const ElementFunction& function, const VectorSet& vectors) {
  constexpr unsigned kEach = 4;  // parameters of a matrix: buffer, offset, strides
  OperandChecks check(w);
  const unsigned count = function.inputs + 1;
  Value* const size0 = w.argument(kEach * count);
  Value* const size1 = w.argument(kEach * count + 1);
  check.writable(w.argument(kEach * function.inputs));
  llvm::SmallVector<Matrix, 3> matrices;
  for (unsigned i = 0; i < count; ++i) {
    Value* const stride0 = w.argument(kEach * i + 2);
    Value* const stride1 = w.argument(kEach * i + 3);
    Value* const data = check.matrix(w.argument(kEach * i), w.argument(kEach * i + 1), stride0, stride1,
                                     size0, size1, function.width);
    matrices.push_back({data, stride0, stride1});
  }
  const auto is = [&](unsigned matrix, uint64_t stride) {
    return w.b.CreateICmpEQ(matrices[matrix].stride1, w.i64(stride));
  };
  const auto write = [&] {
    write_rows(w, function, llvm::ArrayRef(matrices).drop_back(), matrices.back(), size0, size1, vectors);
  };
  // Rows of contiguous elements, or of one element for the whole row, become vectors.
  const auto write_inputs = [&](const auto& self, unsigned next) -> void {
    if (next == function.inputs) return write();
    const Matrix given = matrices[next];
    const auto with_stride = [&](uint64_t stride) {
      matrices[next].stride1 = w.i64(stride);
      self(self, next + 1);
      matrices[next] = given;
    };
    w.if_(is(next, 1), [&] { with_stride(1); }, [&] { with_stride(0); });
  };
  Value* is_vector = function.fails_at_zero ? w.b.getFalse() : is(function.inputs, 1);
  for (unsigned i = 0; i < function.inputs; ++i)
    is_vector = w.b.CreateAnd(is_vector, w.b.CreateOr(is(i, 1), is(i, 0)));
  w.if_(
      w.b.CreateOr(w.b.CreateIsNull(size0), w.b.CreateIsNull(size1)), [] {},
      [&] {
        w.if_(
            is_vector,
            [&] {
              const Matrix out = matrices.back();
              matrices.back().stride1 = w.i64(1);
              write_inputs(write_inputs, 0);
              matrices.back() = out;
            },
            write);
      });
  w.b.CreateRet(w.b.getInt32(0));
}

void write_fill(LoopWriter& w) {
  OperandChecks check(w);
  Value* const size0 = w.argument(4);
  Value* const size1 = w.argument(5);
  Value* const stride = w.argument(3);
  check.writable(w.argument(1));
  Value* const data = check.matrix(w.argument(1), w.argument(2), stride, w.i64(1), size0, size1, 4);
  w.for_each(w.b.CreateSelect(w.b.CreateIsNull(size1), size1, size0), [&](Value* row) {
    w.for_each(size1, [&](Value* column) {
      w.store(w.argument(0), element_at(w, {data, stride, w.i64(1)}, row, column, 4));
    });
  });
  w.b.CreateRet(w.b.getInt32(0));
}

}  // namespace halyard::jit
