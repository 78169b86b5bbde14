// Element-wise functions on rows of vectors. An input may also be one element for a whole row. The remainder
// of a row is computed in a buffer of one vector, so that results do not depend on the position.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/elementwise_simd.cpp"
#include <hwy/foreach_target.h>
// These must come after foreach_target.h.
#include <hwy/highway.h>

#include <utility>

#include "rows.h"
#include "scalar.h"
#include "simd.h"

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using F32s = hn::ScalableTag<float>;
using U32s = hn::RebindToUnsigned<F32s>;
using I32s = hn::RebindToSigned<F32s>;
using F64s = hn::RepartitionToWide<F32s>;
using VF32 = hn::Vec<F32s>;
using VU32 = hn::Vec<U32s>;
using VI32 = hn::Vec<I32s>;
using VF64 = hn::Vec<F64s>;
constexpr F32s f32s;
constexpr U32s u32s;
constexpr I32s i32s;
constexpr F64s f64s;
constexpr size_t kLanes = HWY_LANES(float);

HWY_INLINE VF32 set(float value) { return hn::Set(f32s, value); }

// ---- Integer division, in doubles, because vectors have none. 53 bits distinguish any two 32-bit quotients.

HWY_INLINE VI32 quotient(VI32 a, VI32 b) {
  const hn::Half<I32s> half;
  const VF64 low =
      hn::Div(hn::PromoteTo(f64s, hn::LowerHalf(half, a)), hn::PromoteTo(f64s, hn::LowerHalf(half, b)));
  const VF64 high =
      hn::Div(hn::PromoteTo(f64s, hn::UpperHalf(half, a)), hn::PromoteTo(f64s, hn::UpperHalf(half, b)));
  const VI32 rounded = hn::Combine(i32s, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  // INT_MIN / -1 wraps.
  return hn::IfThenElse(hn::Eq(b, hn::Set(i32s, -1)), hn::Neg(a), rounded);
}

// For half vectors, shifted by 2^31, because only signed integers can be converted.
template <class Half>
HWY_INLINE hn::Vec<Half> unsigned_half(Half half, hn::Vec<Half> a, hn::Vec<Half> b) {
  const VF64 bias = hn::Set(f64s, 0x1p31);
  const VF64 exact = hn::Div(hn::Add(hn::PromoteTo(f64s, a), bias), hn::Add(hn::PromoteTo(f64s, b), bias));
  return hn::DemoteTo(half, hn::Sub(hn::Trunc(exact), bias));
}
HWY_INLINE VU32 quotient(VU32 a, VU32 b) {
  const hn::Half<I32s> half;
  const VI32 sign = hn::Set(i32s, INT32_MIN);
  const VI32 x = hn::Xor(hn::BitCast(i32s, a), sign);
  const VI32 y = hn::Xor(hn::BitCast(i32s, b), sign);
  const auto low = unsigned_half(half, hn::LowerHalf(half, x), hn::LowerHalf(half, y));
  const auto high = unsigned_half(half, hn::UpperHalf(half, x), hn::UpperHalf(half, y));
  return hn::BitCast(u32s, hn::Xor(hn::Combine(i32s, high, low), sign));
}

// ---- Functions. Computed in double precision and rounded once, so one result in many thousands differs in
// the last bit from that of a good C library.

using HalfF32s = hn::Half<F32s>;
using HalfI32s = hn::Half<I32s>;
constexpr HalfF32s half_f32s;
constexpr HalfI32s half_i32s;

template <size_t kTerms>
HWY_INLINE VF64 polynomial(VF64 x, const double (&coefficients)[kTerms]) {  // highest degree first
  VF64 sum = hn::Set(f64s, coefficients[0]);
  for (size_t i = 1; i < kTerms; ++i) sum = hn::MulAdd(sum, x, hn::Set(f64s, coefficients[i]));
  return sum;
}

// e^x = 2^n * e^r with |r| <= ln(2) / 2.
HWY_INLINE VF64 exp(VF64 x) {
  // Adding kRounder removes the fraction of the sum. The low bits of the sum are then n plus the exponent
  // bias.
  constexpr double kRounder = 0x1.8p52 + 1023;
  const VF64 rounded = hn::MulAdd(x, hn::Set(f64s, 0x1.71547652b82fep+0), hn::Set(f64s, kRounder));
  const VF64 n = hn::Sub(rounded, hn::Set(f64s, kRounder));
  const VF64 r = hn::NegMulAdd(n, hn::Set(f64s, 0x1.62e42fefa39efp-1), x);
  constexpr double kSeries[] = {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                1.0 / 24,      1.0 / 6,      1.0 / 2,     1.0,        1.0};
  const hn::RebindToUnsigned<F64s> u64s;
  const VF64 power = hn::BitCast(f64s, hn::ShiftLeft<52>(hn::BitCast(u64s, rounded)));
  return hn::Mul(polynomial(r, kSeries), power);
}
HWY_INLINE VF32 exp(VF32 x) {
  // Values beyond these bounds overflow or underflow anyway.
  const VF32 bounded = hn::Min(hn::Max(x, set(-150.0f)), set(100.0f));
  const auto low = exp(hn::PromoteTo(f64s, hn::LowerHalf(half_f32s, bounded)));
  const auto high = exp(hn::PromoteTo(f64s, hn::UpperHalf(half_f32s, bounded)));
  const VF32 result = hn::Combine(f32s, hn::DemoteTo(half_f32s, high), hn::DemoteTo(half_f32s, low));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// e ln 2 + ln(1 + f), where ln(1 + f) = 2 artanh(s) with s = f / (2 + f).
HWY_INLINE VF64 log(VF64 e, VF64 f) {
  const VF64 s = hn::Div(f, hn::Add(f, hn::Set(f64s, 2.0)));
  constexpr double kSeries[] = {2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
  const VF64 fraction = hn::Mul(s, polynomial(hn::Mul(s, s), kSeries));
  return hn::MulAdd(e, hn::Set(f64s, 0x1.62e42fefa39efp-1), fraction);
}
// x = 2^e * (1 + f), with 1 + f between sqrt(1/2) and sqrt(2).
HWY_INLINE VF32 log(VF32 x) {
  constexpr int32_t kSqrtHalf = 0x3F3504F3;
  const VI32 bits = hn::BitCast(i32s, x);
  const VI32 e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(i32s, kSqrtHalf)));
  const VF32 f = hn::Sub(hn::BitCast(f32s, hn::Sub(bits, hn::ShiftLeft<23>(e))), set(1.0f));
  const auto low =
      log(hn::PromoteTo(f64s, hn::LowerHalf(half_i32s, e)), hn::PromoteTo(f64s, hn::LowerHalf(half_f32s, f)));
  const auto high =
      log(hn::PromoteTo(f64s, hn::UpperHalf(half_i32s, e)), hn::PromoteTo(f64s, hn::UpperHalf(half_f32s, f)));
  VF32 result = hn::Combine(f32s, hn::DemoteTo(half_f32s, high), hn::DemoteTo(half_f32s, low));
  const VF32 infinity = hn::Inf(f32s);
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(f32s)), hn::NaN(f32s), result);
  result = hn::IfThenElse(hn::Lt(hn::Abs(x), set(0x1p-126f)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

HWY_INLINE VI32 leading_zeros(VI32 x) {
  // The exponent of x as a float. Clearing the bit after each leading bit prevents rounding up to the next
  // power of two.
  const VI32 bits = hn::AndNot(hn::BitCast(i32s, hn::ShiftRight<1>(hn::BitCast(u32s, x))), x);
  const VU32 as_float = hn::BitCast(u32s, hn::ConvertTo(f32s, bits));
  const VI32 zeros = hn::Sub(hn::Set(i32s, 127 + 31), hn::BitCast(i32s, hn::ShiftRight<23>(as_float)));
  return hn::Max(hn::Min(zeros, hn::Set(i32s, 32)), hn::Zero(i32s));
}

template <Binary kOperation>
HWY_INLINE VU32 apply(VU32 lhs, VU32 rhs) {
  using enum Binary;
  if constexpr (kOperation <= div_f32) {
    const VF32 a = hn::BitCast(f32s, lhs);
    const VF32 b = hn::BitCast(f32s, rhs);
    if constexpr (kOperation == add_f32) return hn::BitCast(u32s, hn::Add(a, b));
    if constexpr (kOperation == sub_f32) return hn::BitCast(u32s, hn::Sub(a, b));
    if constexpr (kOperation == mul_f32) return hn::BitCast(u32s, hn::Mul(a, b));
    if constexpr (kOperation == div_f32) return hn::BitCast(u32s, hn::Div(a, b));
  } else {
    const VI32 a = hn::BitCast(i32s, lhs);
    const VU32 amount = hn::And(rhs, hn::Set(u32s, 31));
    if constexpr (kOperation == add_i32) return hn::Add(lhs, rhs);
    if constexpr (kOperation == sub_i32) return hn::Sub(lhs, rhs);
    if constexpr (kOperation == mul_i32) return hn::BitCast(u32s, hn::Mul(a, hn::BitCast(i32s, rhs)));
    if constexpr (kOperation == divs_i32) return hn::BitCast(u32s, quotient(a, hn::BitCast(i32s, rhs)));
    if constexpr (kOperation == divu_i32) return quotient(lhs, rhs);
    if constexpr (kOperation == and_i32) return hn::And(lhs, rhs);
    if constexpr (kOperation == or_i32) return hn::Or(lhs, rhs);
    if constexpr (kOperation == xor_i32) return hn::Xor(lhs, rhs);
    if constexpr (kOperation == shl_i32) return hn::Shl(lhs, amount);
    if constexpr (kOperation == shrs_i32) return hn::BitCast(u32s, hn::Shr(a, hn::BitCast(i32s, amount)));
    if constexpr (kOperation == shru_i32) return hn::Shr(lhs, amount);
  }
}

template <Unary kOperation>
HWY_INLINE VU32 apply(VU32 bits) {
  using enum Unary;
  const VF32 x = hn::BitCast(f32s, bits);
  if constexpr (kOperation == abs_f32) return hn::And(bits, hn::Set(u32s, 0x7FFFFFFFu));
  if constexpr (kOperation == neg_f32) return hn::Xor(bits, hn::Set(u32s, 0x80000000u));
  if constexpr (kOperation == ctlz_i32) return hn::BitCast(u32s, leading_zeros(hn::BitCast(i32s, bits)));
  if constexpr (kOperation == ceil_f32) return hn::BitCast(u32s, hn::Ceil(x));
  if constexpr (kOperation == floor_f32) return hn::BitCast(u32s, hn::Floor(x));
  if constexpr (kOperation == exp_f32) return hn::BitCast(u32s, exp(x));
  if constexpr (kOperation == log_f32) return hn::BitCast(u32s, log(x));
  if constexpr (kOperation == rsqrt_f32) return hn::BitCast(u32s, hn::Div(set(1.0f), hn::Sqrt(x)));
}

// ---- Rows

HWY_INLINE VU32 load_vector(const uint8_t* at) {
  return hn::LoadU(u32s, reinterpret_cast<const uint32_t*>(at));
}
HWY_INLINE void store_vector(VU32 value, uint8_t* at) {
  hn::StoreU(value, u32s, reinterpret_cast<uint32_t*>(at));
}

// The next vector of a row, or the row's only element.
template <bool kOne>
HWY_INLINE VU32 input(const uint8_t* row, size_t at) {
  if constexpr (kOne) return hn::Set(u32s, load<uint32_t>(row));
  return load_vector(row + at * 4);
}
template <bool kOne>
HWY_INLINE VU32 last_input(const uint8_t* row, size_t at, size_t count) {
  if constexpr (kOne) return input<true>(row, at);
  HWY_ALIGN uint32_t buffer[kLanes];
  hn::Store(hn::Set(u32s, 1), u32s, buffer);  // avoids a division by zero
  std::memcpy(buffer, row + at * 4, count * 4);
  return hn::Load(u32s, buffer);
}
HWY_INLINE void store_last(VU32 value, uint8_t* row, size_t at, size_t count) {
  HWY_ALIGN uint32_t buffer[kLanes];
  hn::Store(value, u32s, buffer);
  std::memcpy(row + at * 4, buffer, count * 4);
}

// Applies the operation to a row. False: a divisor is 0.
template <Binary kOperation, bool kOneLhs, bool kOneRhs>
bool binary_row(const uint8_t* lhs, const uint8_t* rhs, uint8_t* out, size_t size) {
  size_t at = 0;
  for (; at + kLanes <= size; at += kLanes) {
    const VU32 b = input<kOneRhs>(rhs, at);
    if constexpr (scalar::kDivides<kOperation>)
      if (!hn::AllFalse(i32s, hn::Eq(hn::BitCast(i32s, b), hn::Zero(i32s)))) return false;
    store_vector(apply<kOperation>(input<kOneLhs>(lhs, at), b), out + at * 4);
  }
  if (at == size) return true;
  const VU32 b = last_input<kOneRhs>(rhs, at, size - at);
  if constexpr (scalar::kDivides<kOperation>)
    if (!hn::AllFalse(i32s, hn::Eq(hn::BitCast(i32s, b), hn::Zero(i32s)))) return false;
  store_last(apply<kOperation>(last_input<kOneLhs>(lhs, at, size - at), b), out, at, size - at);
  return true;
}

template <Binary kOperation>
bool binary(const Input& lhs, const Input& rhs, const Output& out, const Shape& shape) {
  Rows<3> rows = {{{{lhs.data, lhs.stride0, lhs.stride1},
                    {rhs.data, rhs.stride0, rhs.stride1},
                    {out.data, out.stride0, out.stride1}}},
                  shape.size0,
                  shape.size1};
  const bool arranged = rows.arrange(4);
  const uint64_t lhs_stride = rows.operands[0].stride1;
  const uint64_t rhs_stride = rows.operands[1].stride1;
  if (!arranged || (rows.size1 != 1 && (lhs_stride > 1 || rhs_stride > 1)))
    return scalar::binary<kOperation>(lhs, rhs, out, shape);
  constexpr bool (*kRows[2][2])(const uint8_t*, const uint8_t*, uint8_t*, size_t) = {
      {binary_row<kOperation, true, true>, binary_row<kOperation, true, false>},
      {binary_row<kOperation, false, true>, binary_row<kOperation, false, false>}};
  const auto row = kRows[rows.size1 == 1 || lhs_stride == 1][rows.size1 == 1 || rhs_stride == 1];
  for (uint64_t i = 0; i < rows.size0; ++i) {
    uint8_t* const to = out.data + (rows.row(2, i, 4) - out.data);
    if (!row(rows.row(0, i, 4), rows.row(1, i, 4), to, rows.size1)) return false;
  }
  return true;
}

template <Unary kOperation>
void unary(const Input& in, const Output& out, const Shape& shape) {
  Rows<2> rows = {
      {{{in.data, in.stride0, in.stride1}, {out.data, out.stride0, out.stride1}}}, shape.size0, shape.size1};
  const bool arranged = rows.arrange(4);
  if (!arranged || (rows.size1 != 1 && rows.operands[0].stride1 != 1))
    return scalar::unary<kOperation>(in, out, shape);
  for (uint64_t i = 0; i < rows.size0; ++i) {
    const uint8_t* const from = rows.row(0, i, 4);
    uint8_t* const to = out.data + (rows.row(1, i, 4) - out.data);
    size_t at = 0;
    if constexpr (kOperation == Unary::rsqrt_f32) {
      // Programs often broadcast a number to a row before they take its root, so a repeated vector is common.
      VU32 last = hn::Zero(u32s);
      VU32 root = apply<kOperation>(last);
      for (; at + kLanes <= rows.size1; at += kLanes) {
        const VU32 next = load_vector(from + at * 4);
        if (!hn::AllTrue(u32s, hn::Eq(next, last))) root = apply<kOperation>(last = next);
        store_vector(root, to + at * 4);
      }
    }
    for (; at + kLanes <= rows.size1; at += kLanes)
      store_vector(apply<kOperation>(load_vector(from + at * 4)), to + at * 4);
    if (at == rows.size1) continue;
    const size_t rest = rows.size1 - at;
    store_last(apply<kOperation>(last_input<false>(from, at, rest)), to, at, rest);
  }
}

template <size_t... kIndex>
constexpr std::array<BinaryKernel, kBinaryCount> binaries(std::index_sequence<kIndex...>) {
  return {binary<static_cast<Binary>(kIndex)>...};
}
template <size_t... kIndex>
constexpr std::array<UnaryKernel, kUnaryCount> unaries(std::index_sequence<kIndex...>) {
  return {unary<static_cast<Unary>(kIndex)>...};
}

}  // namespace

void add_elementwise(Kernels& kernels) {
  kernels.binary = binaries(std::make_index_sequence<kBinaryCount>());
  kernels.unary = unaries(std::make_index_sequence<kUnaryCount>());
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else
VMVX_NO_KERNELS(add_elementwise, (Kernels&))
#endif

#if HWY_ONCE
namespace halyard::local::vmvx {

void add_elementwise_simd(int64_t target, Kernels& kernels) {
  VMVX_FUNCTION_FOR(target, add_elementwise)(kernels);
}

}  // namespace halyard::local::vmvx
#endif
