// Transposes elements of 4 bytes in vectors, for one instruction set: Highway's files include this file once
// for each target.
#if defined(VMVX_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef VMVX_TRANSPOSE_INL_H
#undef VMVX_TRANSPOSE_INL_H
#else
#define VMVX_TRANSPOSE_INL_H
#endif

#include <hwy/highway.h>

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Transposes 4 x 4 elements within each block of 16 bytes: element j of vector i goes to element i of vector
// j.
template <class D>
HWY_INLINE void transpose_within_blocks(D d, hn::Vec<D> (&v)[4]) {
  const hn::Repartition<uint64_t, D> d64;
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, v[0], v[1]));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, v[2], v[3]));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, v[0], v[1]));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, v[2], v[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
  v[2] = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
