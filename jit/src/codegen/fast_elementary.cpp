// The coefficients make the largest relative error of each polynomial as small as possible, before rounding.
#include "codegen/fast_elementary.h"

#include <bit>
#include <cstdint>
#include <span>

#include "codegen/number.h"

namespace halyard::jit {

namespace {

// x^0, x^1, ... with these coefficients, the highest power first. One chain, because several vectors are
// computed at the same time.
Number polynomial(std::span<const double> coefficients, const Number& x) {
  Number sum = x * coefficients[0] + coefficients[1];
  for (const double coefficient : coefficients.subspan(2)) sum = sum * x + coefficient;
  return sum;
}

// Both limits let NaNs pass.
Number at_most(double most, const Number& x) { return less(most, x, most, x); }
Number at_least(double least, const Number& x) { return less(x, least, least, x); }

// Added to a number below 2^22, rounds it to an integer, which is then in the low bits.
constexpr double kNearest = 0x1.8p23;

// n, where `nearest` is n + kNearest.
llvm::Value* integer(const Number& nearest) {
  llvm::IRBuilder<>& b = *nearest.builder();
  return b.CreateSub(b.CreateBitCast(nearest.value(), b.getInt32Ty()),
                     b.getInt32(std::bit_cast<uint32_t>(static_cast<float>(kNearest))));
}

// 2^n, for n from -126 to 127.
Number power_of_two(llvm::IRBuilder<>& b, llvm::Value* n) {
  constexpr uint32_t kBias = 127, kMantissaBits = 23;
  return {b, b.CreateBitCast(b.CreateShl(b.CreateAdd(n, b.getInt32(kBias)), kMantissaBits), b.getFloatTy())};
}

// x * 2^n, for n from -252 to 254: by two factors, because 2^n may not be an f32 if the product is.
Number scaled(const Number& x, llvm::Value* n) {
  llvm::IRBuilder<>& b = *x.builder();
  llvm::Value* const half = b.CreateAShr(n, 1);
  return x * power_of_two(b, half) * power_of_two(b, b.CreateSub(n, half));
}

// x = n * ln 2 + rest, with a magnitude of `rest` of at most half of ln 2.
struct Split {
  llvm::Value* n;
  Number power;  // e^rest
};
Split split(const Number& x) {
  static constexpr double kTerms[] = {0.001381313893944025,
                                      0.00836941972374916,
                                      0.04166845604777336,
                                      0.16666515171527863,
                                      0.4999999403953552,
                                      1,
                                      1};
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High = 0.693359375, kLn2Low = -2.1219444005469057e-4;  // the high part has 9 bits
  const Number nearest = x * kLog2E + kNearest;
  const Number n = nearest - kNearest;
  return {integer(nearest), polynomial(kTerms, (x - n * kLn2High) - n * kLn2Low)};
}

// For x from -87 to 88.
Number exponential_within(const Number& x) {
  const Split parts = split(x);
  return parts.power * power_of_two(*x.builder(), parts.n);
}

// At the limits results are 0 and infinite.

Number exponential(const Number& x) {
  const Split parts = split(at_least(-104.5, at_most(89, x)));
  return scaled(parts.power, parts.n);
}

Number binary_exponential(const Number& x) {
  static constexpr double kTerms[] = {0.00015352314221672714,
                                      0.0013400171884,
                                      0.009618449956178665,
                                      0.05550329387187958,
                                      0.24022647738456726,
                                      0.6931471824645996,
                                      1};
  const Number limited = at_least(-151, at_most(129, x));
  const Number nearest = limited + kNearest;
  return scaled(polynomial(kTerms, limited - (nearest - kNearest)), integer(nearest));
}

// 1 - 2 / (e^(2x) + 1), but a polynomial near 0, where that loses bits.
Number hyperbolic_tangent(const Number& x) {
  static constexpr double kTerms[] = {-0.0058951363898813725, 0.020795952528715134, -0.05378382280468941,
                                      0.13331924378871918, -0.33333298563957214};
  constexpr double kNearZero = 0.6;
  const Number size = magnitude(x);
  const Number square = size * size;
  const Number near_zero = size + size * square * polynomial(kTerms, square);
  const Number power = exponential_within(at_most(10, size) * 2.0);
  return copy_sign(less(size, kNearZero, near_zero, Number(1.0) - Number(2.0) / (power + 1.0)), x);
}

// 1 - e^(-p(x)), but another polynomial near 0, where that loses bits.
Number error_function(const Number& x) {
  static constexpr double kNearZeroTerms[] = {-0.0005631173844449222, 0.00491748284548521,
                                              -0.026711242273449898,  0.11280176788568497,
                                              -0.37612324953079224,   1.1283791065216064};
  static constexpr double kTerms[] = {-0.00018638164328876883, 0.0029476815834641457, -0.021838154643774033,
                                      0.10310693830251694,     0.6381446123123169,    1.127089262008667,
                                      0.0003414943639654666};
  const Number size = magnitude(x);
  const Number near_zero = size * polynomial(kNearZeroTerms, size * size);
  const Number power = exponential_within(Number(0.0) - polynomial(kTerms, at_most(4, size)));
  return copy_sign(less(size, 1.0, near_zero, Number(1.0) - power), x);
}

}  // namespace

llvm::Value* emit_fast_elementary(llvm::IRBuilder<>& builder, vm::Op op, llvm::Value* x) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  llvm::FastMathFlags flags;
  flags.setAllowContract();
  builder.setFastMathFlags(flags);
  const Number number(builder, x);
  switch (op) {
    case vm::Op::exp_f32:
      return exponential(number).value();
    case vm::Op::exp2_f32:
      return binary_exponential(number).value();
    case vm::Op::tanh_f32:
      return hyperbolic_tangent(number).value();
    case vm::Op::erf_f32:
      return error_function(number).value();
    default:
      return nullptr;
  }
}

}  // namespace halyard::jit
