// Copies and fills rows. Long rows use memcpy and memset. Short rows, which tiles consist of, do not justify
// a call.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/copy_simd.cpp"
#include <hwy/foreach_target.h>
// These must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "rows.h"
#include "scalar.h"
#include "simd.h"

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U8s = hn::ScalableTag<uint8_t>;
using U32s = hn::ScalableTag<uint32_t>;
constexpr U8s u8s;
constexpr U32s u32s;
constexpr size_t kVector = HWY_LANES(uint8_t);
constexpr size_t kShort = 512;  // bytes
// Larger copies bypass the caches, like memcpy, because the data would be evicted before it is used.
constexpr size_t kStreamed = size_t{1} << 24;

// Copies at least one vector and at most kShort bytes. The last vector may overlap the previous one.
HWY_INLINE void copy_short(const uint8_t* from, uint8_t* to, size_t size) {
  const auto last = hn::LoadU(u8s, from + size - kVector);
  for (size_t at = 0; at + kVector < size; at += kVector) hn::StoreU(hn::LoadU(u8s, from + at), u8s, to + at);
  hn::StoreU(last, u8s, to + size - kVector);
}

template <typename T>
void copy(const Input& in, const Output& out, const Shape& shape) {
  const uint64_t elements = shape.size0 * shape.size1;
  if (in.stride1 == 1 && out.stride1 == 1 && in.stride0 == shape.size1 && out.stride0 == shape.size1 &&
      (in.data + elements * sizeof(T) <= out.data || out.data + elements * sizeof(T) <= in.data)) {
    std::memcpy(out.data, in.data, elements * sizeof(T));
    return;
  }
  Rows<2> rows = {
      {{{in.data, in.stride0, in.stride1}, {out.data, out.stride0, out.stride1}}}, shape.size0, shape.size1};
  if (!rows.arrange(sizeof(T)) || (rows.size1 != 1 && rows.operands[0].stride1 != 1))
    return scalar::copy<T>(in, out, shape);
  if (rows.operands[0] == rows.operands[1]) return;  // a copy onto itself
  const size_t size = rows.size1 * sizeof(T);
  const bool is_short = size >= kVector && size <= kShort;
  for (uint64_t i = 0; i < rows.size0; ++i) {
    const uint8_t* const from = rows.row(0, i, sizeof(T));
    uint8_t* const to = out.data + (rows.row(1, i, sizeof(T)) - out.data);
    if (is_short) {
      copy_short(from, to, size);
    } else {
      std::memcpy(to, from, size);
    }
  }
}

void fill_row(uint32_t value, uint8_t* row, size_t size) {
  const auto values = hn::Set(u32s, value);
  auto* const elements = reinterpret_cast<uint32_t*>(row);
  constexpr size_t kLanes = HWY_LANES(uint32_t);
  size_t at = 0;
  if (size * 4 >= kStreamed && reinterpret_cast<uintptr_t>(row) % 4 == 0) {
    for (; reinterpret_cast<uintptr_t>(elements + at) % kVector != 0; ++at) elements[at] = value;
    for (; at + kLanes <= size; at += kLanes) hn::Stream(values, u32s, elements + at);
    hwy::FlushStream();
  }
  for (; at + kLanes <= size; at += kLanes) hn::StoreU(values, u32s, elements + at);
  for (; at < size; ++at) store(row + at * 4, value);
}

// Overlapping rows are allowed, because all elements are equal.
void fill(uint32_t value, const Output& out, const Shape& shape) {
  const bool dense = out.stride0 == shape.size1;
  const uint64_t rows = dense ? 1 : shape.size0;
  const uint64_t size = dense ? shape.size0 * shape.size1 : shape.size1;
  const bool same_bytes = value == (value & 0xFF) * 0x01010101u;
  for (uint64_t i = 0; i < rows; ++i) {
    uint8_t* const row = out.data + i * out.stride0 * 4;
    if (same_bytes && size * 4 > kShort) {
      std::memset(row, static_cast<int>(value & 0xFF), size * 4);
    } else {
      fill_row(value, row, size);
    }
  }
}

}  // namespace

void add_copy(Kernels& kernels) {
  kernels.copy = {copy<uint8_t>, copy<uint16_t>, copy<uint32_t>, copy<uint64_t>};
  kernels.fill = fill;
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else
VMVX_NO_KERNELS(add_copy, (Kernels&))
#endif

#if HWY_ONCE
namespace halyard::local::vmvx {

void add_copy_simd(int64_t target, Kernels& kernels) { VMVX_FUNCTION_FOR(target, add_copy)(kernels); }

}  // namespace halyard::local::vmvx
#endif
