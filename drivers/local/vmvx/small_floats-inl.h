// 16-bit floats in 32-bit lanes, for one instruction set: Highway's files include this file once for each
// target. Rounding is that of small_floats.h. Sets with instructions for half precision use these. Highway's
// own fallbacks are not used, because they truncate instead of rounding and do not produce infinities.
#if defined(VMVX_SMALL_FLOATS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef VMVX_SMALL_FLOATS_INL_H
#undef VMVX_SMALL_FLOATS_INL_H
#else
#define VMVX_SMALL_FLOATS_INL_H
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using VecU16Of = hn::Vec<hn::Rebind<uint16_t, D>>;

#if HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64
template <class D>
HWY_INLINE hn::Vec<D> f16_to_f32(D d, VecU16Of<D> bits) {
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), bits));
}
template <class D>
HWY_INLINE VecU16Of<D> f32_to_f16(D, hn::Vec<D> value) {
  return hn::BitCast(hn::Rebind<uint16_t, D>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), value));
}
#else
template <class D>
HWY_INLINE hn::Vec<D> f16_to_f32(D d, VecU16Of<D> narrow) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::PromoteTo(du, narrow);
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFF)));
  const auto normal = hn::Add(magnitude, hn::Set(du, 112u << 23));
  const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000));
  const auto fraction = hn::ConvertTo(d, hn::BitCast(di, hn::And(bits, hn::Set(du, 0x3FF))));
  const auto denormal = hn::BitCast(du, hn::Mul(fraction, hn::Set(d, 0x1p-24f)));
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto is_special = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x0F7FFFFF)));
  const auto is_denormal = hn::RebindMask(du, hn::Lt(signed_magnitude, hn::Set(di, 0x00800000)));
  const auto result = hn::IfThenElse(is_denormal, denormal, hn::IfThenElse(is_special, special, normal));
  return hn::BitCast(d, hn::Or(sign, result));
}
template <class D>
HWY_INLINE VecU16Of<D> f32_to_f16(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, value);
  const auto sign = hn::And(bits, hn::Set(du, 0x80000000u));
  const auto magnitude = hn::Xor(bits, sign);
  const auto signed_magnitude = hn::BitCast(di, magnitude);
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0xC8000FFFu)), odd));
  // The addition rounds, because floats near 0.5 have steps of 2^-24, the smallest f16.
  const auto half = hn::Set(d, 0.5f);
  const auto denormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(d, magnitude), half)), hn::BitCast(du, half));
  const auto is_denormal = hn::RebindMask(du, hn::Lt(signed_magnitude, hn::Set(di, 0x38800000)));
  const auto is_large = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x477FEFFF)));
  const auto is_nan = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x7F800000)));
  auto result = hn::IfThenElse(is_denormal, denormal, normal);
  result = hn::IfThenElse(is_large, hn::Set(du, 0x7C00), result);
  result = hn::IfThenElse(is_nan, hn::Set(du, 0x7E00), result);
  result = hn::Or(result, hn::ShiftRight<16>(sign));
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(), hn::BitCast(di, result));
}
#endif

template <class D>
HWY_INLINE hn::Vec<D> bf16_to_f32(D d, VecU16Of<D> bits) {
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<D>(), bits)));
}
// The nearest bf16, as an f32.
template <class D>
HWY_INLINE hn::Vec<D> round_to_bf16(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::And(hn::Add(hn::Add(bits, hn::Set(du, 0x7FFF)), odd), hn::Set(du, 0xFFFF0000u));
  return hn::IfThenElse(hn::IsNaN(value), value, hn::BitCast(d, rounded));
}
template <class D>
HWY_INLINE VecU16Of<D> f32_to_bf16(D d, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  auto bits = hn::BitCast(du, round_to_bf16(d, value));
  // Makes NaNs quiet, so that dropping the lower half keeps them NaN.
  const auto quiet =
      hn::BitCast(du, hn::IfThenElseZero(hn::IsNaN(value), hn::BitCast(d, hn::Set(du, 0x400000))));
  bits = hn::ShiftRight<16>(hn::Or(bits, quiet));
  return hn::DemoteTo(hn::Rebind<uint16_t, D>(), hn::BitCast(hn::RebindToSigned<D>(), bits));
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
