// Matrix products of 16 x 16 tiles; those of s8 without VNNI are in mmt4d_8x4_simd.cpp. For all types, the
// unit of work has 32 bits: an f32, two 16-bit integers or bf16, four 8-bit integers. A vector contains units
// of several columns of the right side; a unit of the left side is broadcast to them. Types without a
// multiply instruction are widened: the left side in blocks and in advance, because every column uses each of
// its units; the right side when it is loaded. A policy class defines this for each type.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/mmt4d_simd.cpp"
#include <hwy/foreach_target.h>
// These must come after foreach_target.h.
#include <hwy/highway.h>

#include <algorithm>

#include "scalar.h"
#include "simd.h"
#include "small_floats-inl.h"

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

constexpr size_t kTile = 16;             // rows and columns
constexpr size_t kUnit = 4;              // bytes
constexpr size_t kStep = kTile * kUnit;  // bytes of a tile for one k, in units

// The numbers of k and of tile columns in a block. A block of the left side fits in the first-level cache; a
// block of the right side fits in the second level.
constexpr uint64_t kBlockSteps = 256;
constexpr uint64_t kBlockTiles = 16;

using F32s = hn::CappedTag<float, kTile>;
using I32s = hn::RebindToSigned<F32s>;
using U32s = hn::RebindToUnsigned<F32s>;
using I16s = hn::RepartitionToNarrow<I32s>;
using VF32 = hn::Vec<F32s>;
using VI32 = hn::Vec<I32s>;
constexpr F32s f32s;
constexpr I32s i32s;
constexpr U32s u32s;
constexpr I16s i16s;

constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kVectors = kTile / kLanes;  // in a row of a tile

// The numbers of rows and vectors computed together: as many products for each load as the registers allow,
// and enough to hide the latency of a product. A single remaining vector is computed with more rows.
#if HWY_TARGET <= HWY_AVX3
constexpr size_t kManyRows = 8, kManyColumns = 2, kLastRows = 16;
#elif HWY_ARCH_ARM_A64
constexpr size_t kManyRows = 8, kManyColumns = 2, kLastRows = 8;
#else
constexpr size_t kManyRows = 4, kManyColumns = 2, kLastRows = 8;
#endif
static_assert(kTile % kManyRows == 0 && kTile % kLastRows == 0);

// ---- Results of products

struct F32Result {
  using Vec = VF32;
  static constexpr size_t kSize = 4;
  static HWY_INLINE Vec load(const uint8_t* at) {
    return hn::LoadU(f32s, reinterpret_cast<const float*>(at));
  }
  static HWY_INLINE void store(Vec value, uint8_t* at) {
    hn::StoreU(value, f32s, reinterpret_cast<float*>(at));
  }
};
struct S32Result {
  using Vec = VI32;
  static constexpr size_t kSize = 4;
  static HWY_INLINE Vec load(const uint8_t* at) {
    return hn::LoadU(i32s, reinterpret_cast<const int32_t*>(at));
  }
  static HWY_INLINE void store(Vec value, uint8_t* at) {
    hn::StoreU(value, i32s, reinterpret_cast<int32_t*>(at));
  }
};
HWY_INLINE VecU16Of<F32s> load_u16(const uint8_t* at) {
  return hn::LoadU(hn::Rebind<uint16_t, F32s>(), reinterpret_cast<const uint16_t*>(at));
}
HWY_INLINE void store_u16(VecU16Of<F32s> bits, uint8_t* at) {
  hn::StoreU(bits, hn::Rebind<uint16_t, F32s>(), reinterpret_cast<uint16_t*>(at));
}
struct F16Result {
  using Vec = VF32;
  static constexpr size_t kSize = 2;
  static HWY_INLINE Vec load(const uint8_t* at) { return f16_to_f32(f32s, load_u16(at)); }
  static HWY_INLINE void store(Vec value, uint8_t* at) { store_u16(f32_to_f16(f32s, value), at); }
  static HWY_INLINE Vec round(Vec value) { return f16_to_f32(f32s, f32_to_f16(f32s, value)); }
};
struct Bf16Result {
  using Vec = VF32;
  static constexpr size_t kSize = 2;
  static HWY_INLINE Vec load(const uint8_t* at) { return bf16_to_f32(f32s, load_u16(at)); }
  static HWY_INLINE void store(Vec value, uint8_t* at) { store_u16(f32_to_bf16(f32s, value), at); }
  static HWY_INLINE Vec round(Vec value) { return round_to_bf16(f32s, value); }
};

// ---- Units

HWY_INLINE VF32 broadcast_f32(const uint8_t* at) { return hn::Set(f32s, vmvx::load<float>(at)); }
HWY_INLINE VI32 broadcast_i32(const uint8_t* at) { return hn::Set(i32s, vmvx::load<int32_t>(at)); }

// Adds the products of two 16-bit integers to `sum`, in each 32-bit lane.
HWY_INLINE VI32 add_pair_products(VI32 sum, VI32 a, VI32 b) {
#if HWY_TARGET == HWY_AVX3_DL
  VMVX_DOT("vpdpwssd", sum, a, b);
  return sum;
#elif HWY_ARCH_X86
  VI32 none = sum;
  return hn::ReorderWidenMulAccumulate(i32s, hn::BitCast(i16s, a), hn::BitCast(i16s, b), sum, none);
#elif HWY_ARCH_ARM_A64
  const int16x8_t a16 = vreinterpretq_s16_s32(a.raw);
  const int16x8_t b16 = vreinterpretq_s16_s32(b.raw);
  const int32x4_t low = vmull_s16(vget_low_s16(a16), vget_low_s16(b16));
  return hn::Add(sum, VI32(vpaddq_s32(low, vmull_high_s16(a16, b16))));
#else
  const VI32 low =
      hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a)), hn::ShiftRight<16>(hn::ShiftLeft<16>(b)));
  return hn::Add(sum, hn::Add(low, hn::Mul(hn::ShiftRight<16>(a), hn::ShiftRight<16>(b))));
#endif
}

HWY_INLINE VI32 load_units(const uint8_t* at) {
  return hn::LoadU(i32s, reinterpret_cast<const int32_t*>(at));
}
HWY_INLINE VI32 s8_to_pairs(const uint8_t* at) {
  const hn::Rebind<int8_t, I16s> narrow;
  return hn::BitCast(i32s, hn::PromoteTo(i16s, hn::LoadU(narrow, reinterpret_cast<const int8_t*>(at))));
}
// Widens the two 4-bit elements of each byte to 16 bits.
HWY_INLINE VI32 u4_to_pairs(const uint8_t* at) {
  const auto bytes = hn::PromoteTo(i32s, hn::LoadU(hn::Rebind<uint8_t, I32s>(), at));
  return hn::And(hn::Or(bytes, hn::ShiftLeft<12>(bytes)), hn::Set(i32s, 0x000F000F));
}
HWY_INLINE VI32 s4_to_pairs(const uint8_t* at) {
  const auto bias = hn::Set(i16s, 8);
  return hn::BitCast(i32s, hn::Sub(hn::Xor(hn::BitCast(i16s, u4_to_pairs(at)), bias), bias));
}

// ---- Policies. kLhsBits and kRhsBits are the sizes of a unit in memory.

struct F32Policy {
  static constexpr size_t kRows = kManyRows, kColumns = kManyColumns;
  using Result = F32Result;
  static constexpr Mmt4dType kType = Mmt4dType::f32f32f32;
  static constexpr uint32_t kK0 = 1;
  static constexpr size_t kLhsBits = 32, kRhsBits = 32;
  static constexpr bool kWidens = false;
  static HWY_INLINE VF32 lhs(const uint8_t* at) { return broadcast_f32(at); }
  static HWY_INLINE VF32 rhs(const uint8_t* at) { return F32Result::load(at); }
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) { return hn::MulAdd(a, b, sum); }
};

struct F16Policy : F32Policy {
  static constexpr Mmt4dType kType = Mmt4dType::f16f16f32;
  static constexpr size_t kLhsBits = 16, kRhsBits = 16;
  static constexpr bool kWidens = true;
  static HWY_INLINE void widen(const uint8_t* from, uint8_t* to) { F32Result::store(rhs(from), to); }
  static HWY_INLINE VF32 rhs(const uint8_t* at) { return F16Result::load(at); }
};
struct F16F16Policy : F16Policy {
  using Result = F16Result;
  static constexpr Mmt4dType kType = Mmt4dType::f16f16f16;
};
struct F16RoundedPolicy : F16F16Policy {
  // The product of two f16 is exact in f32, so a fused multiply-add gives the same result.
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) { return F16Result::round(hn::MulAdd(a, b, sum)); }
};

// Pairs of bf16, multiplied as f32 one after the other. The bits of a bf16 are the upper half of an f32.
struct Bf16Policy : F32Policy {
  static constexpr Mmt4dType kType = Mmt4dType::bf16bf16f32;
  static constexpr uint32_t kK0 = 2;
  static HWY_INLINE VF32 first(VF32 pair) {
    return hn::BitCast(f32s, hn::ShiftLeft<16>(hn::BitCast(u32s, pair)));
  }
  static HWY_INLINE VF32 second(VF32 pair) {
    return hn::And(pair, hn::BitCast(f32s, hn::Set(u32s, 0xFFFF0000u)));
  }
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) {
    return hn::MulAdd(second(a), second(b), hn::MulAdd(first(a), first(b), sum));
  }
};
struct Bf16Bf16Policy : Bf16Policy {
  using Result = Bf16Result;
  static constexpr Mmt4dType kType = Mmt4dType::bf16bf16bf16;
};
struct Bf16RoundedPolicy : Bf16Bf16Policy {
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) {
    sum = Bf16Result::round(hn::MulAdd(first(a), first(b), sum));
    return Bf16Result::round(hn::MulAdd(second(a), second(b), sum));
  }
};

#if HWY_TARGET == HWY_AVX3_DL
// Multiplies both at once with AVX512_BF16, which some processors of this set lack.
struct Bf16DotPolicy : Bf16Policy {
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) {
    VMVX_DOT("vdpbf16ps", sum, a, b);
    return sum;
  }
};
struct Bf16Bf16DotPolicy : Bf16DotPolicy {
  using Result = Bf16Result;
  static constexpr Mmt4dType kType = Mmt4dType::bf16bf16bf16;
};
#endif

struct S16Policy {
  static constexpr size_t kRows = kManyRows, kColumns = kManyColumns;
  using Result = S32Result;
  static constexpr Mmt4dType kType = Mmt4dType::s16s16s32;
  static constexpr uint32_t kK0 = 2;
  static constexpr size_t kLhsBits = 32, kRhsBits = 32;
  static constexpr bool kWidens = false;
  static HWY_INLINE VI32 lhs(const uint8_t* at) { return broadcast_i32(at); }
  static HWY_INLINE VI32 rhs(const uint8_t* at) { return load_units(at); }
  static HWY_INLINE VI32 add(VI32 sum, VI32 a, VI32 b) { return add_pair_products(sum, a, b); }
};
struct S16U4Policy : S16Policy {
  static constexpr Mmt4dType kType = Mmt4dType::s16u4s32;
  static constexpr size_t kRhsBits = 8;
  static HWY_INLINE VI32 rhs(const uint8_t* at) { return u4_to_pairs(at); }
};
struct S16S8Policy : S16Policy {
  static constexpr Mmt4dType kType = Mmt4dType::s16s8s32;
  static constexpr size_t kRhsBits = 16;
  static HWY_INLINE VI32 rhs(const uint8_t* at) { return s8_to_pairs(at); }
};

#if HWY_TARGET == HWY_AVX3_DL
// The instruction multiplies unsigned bytes by signed bytes. So kExcess is added to the right side, and
// kExcess times the sum of the left side is subtracted from the result.
struct S8Policy {
  static constexpr size_t kRows = kManyRows, kColumns = kManyColumns;
  using Result = S32Result;
  static constexpr Mmt4dType kType = Mmt4dType::s8s8s32;
  static constexpr uint32_t kK0 = 4;
  static constexpr size_t kLhsBits = 32, kRhsBits = 32;
  static constexpr bool kWidens = false;
  static constexpr int8_t kExcess = -128;  // 128, as an unsigned byte
  static HWY_INLINE VI32 lhs(const uint8_t* at) { return broadcast_i32(at); }
  static HWY_INLINE VI32 rhs(const uint8_t* at) {
    return hn::Xor(load_units(at), VI32{_mm512_set1_epi8(kExcess)});
  }
  static HWY_INLINE VI32 add(VI32 sum, VI32 a, VI32 b) {
    VMVX_DOT("vpdpbusd", sum, b, a);
    return sum;
  }
  // Called for each row.
  static HWY_INLINE VI32 add_excess(VI32 sum, const uint8_t* rows) {
    return add(sum, load_units(rows), VI32{_mm512_set1_epi8(kExcess)});
  }
};
struct S8S4Policy : S8Policy {
  static constexpr Mmt4dType kType = Mmt4dType::s8s4s32;
  // All rows use one vector, because building a vector takes longer than loading one.
  static constexpr size_t kRows = kTile, kColumns = 1;
  static constexpr size_t kRhsBits = 16;
  static constexpr int8_t kExcess = 8;
  static HWY_INLINE VI32 rhs(const uint8_t* at) {
    // Expands four elements in 16 bits: first moves a byte with two elements into each half, then an element
    // into each byte.
    VI32 units =
        hn::PromoteTo(i32s, hn::LoadU(hn::Rebind<uint16_t, I32s>(), reinterpret_cast<const uint16_t*>(at)));
    units = hn::And(hn::Or(units, hn::ShiftLeft<8>(units)), hn::Set(i32s, 0x00FF00FF));
    units = hn::And(hn::Or(units, hn::ShiftLeft<4>(units)), hn::Set(i32s, 0x0F0F0F0F));
    return hn::Xor(units, hn::Set(i32s, 0x08080808));
  }
  static HWY_INLINE VI32 add_excess(VI32 sum, const uint8_t* rows) {
    return add(sum, load_units(rows), hn::Set(i32s, 0x08080808));
  }
};
#else
struct S8S4Policy : S16Policy {
  static constexpr Mmt4dType kType = Mmt4dType::s8s4s32;
  static constexpr size_t kLhsBits = 16, kRhsBits = 8;
  static constexpr bool kWidens = true;
  static HWY_INLINE void widen(const uint8_t* from, uint8_t* to) { S32Result::store(s8_to_pairs(from), to); }
  static HWY_INLINE VI32 rhs(const uint8_t* at) { return s4_to_pairs(at); }
};
#endif

template <class Policy>
constexpr bool kHasExcess = requires { Policy::kExcess; };

// ---- The loops

struct Block {
  const uint8_t* lhs;  // the first unit of the first row
  uint64_t steps;      // k, in units
  size_t lhs_step;     // bytes from one k to the next
  bool add;            // add to the existing output
};

// Products of kRows rows and kCount vectors of columns. `excess` belongs to the first row.
template <class Policy, size_t kRowCount, size_t kCount>
HWY_INLINE void multiply(const Block& block, const uint8_t* const* rhs, uint8_t* const* out,
                         [[maybe_unused]] const int32_t* excess) {
  using Result = typename Policy::Result;
  constexpr size_t kRhsStep = kTile * Policy::kRhsBits / 8;
  typename Result::Vec sums[kRowCount][kCount];
  VMVX_UNROLL for (size_t row = 0; row < kRowCount; ++row) {
    VMVX_UNROLL for (size_t i = 0; i < kCount; ++i) {
      if (block.add) {
        sums[row][i] = Result::load(out[i] + row * kTile * Result::kSize);
      } else {
        sums[row][i] = hn::Zero(hn::DFromV<typename Result::Vec>());
      }
      if constexpr (kHasExcess<Policy>) sums[row][i] = hn::Sub(sums[row][i], hn::Set(i32s, excess[row]));
    }
  }
  const uint8_t* lhs = block.lhs;
  size_t rhs_at = 0;
  for (uint64_t step = 0; step < block.steps; ++step) {
    typename Result::Vec columns[kCount];
    VMVX_UNROLL for (size_t i = 0; i < kCount; ++i) columns[i] = Policy::rhs(rhs[i] + rhs_at);
    VMVX_UNROLL for (size_t row = 0; row < kRowCount; ++row) {
      const auto unit = Policy::lhs(lhs + row * kUnit);
      VMVX_UNROLL for (size_t i = 0; i < kCount; ++i) sums[row][i] =
          Policy::add(sums[row][i], unit, columns[i]);
    }
    lhs += block.lhs_step;
    rhs_at += kRhsStep;
  }
  VMVX_UNROLL for (size_t row = 0; row < kRowCount; ++row) {
    VMVX_UNROLL for (size_t i = 0; i < kCount; ++i)
        Result::store(sums[row][i], out[i] + row * kTile * Result::kSize);
  }
}

// All rows of a tile and kCount vectors, counted from `first`. The vectors may belong to several tiles.
template <class Policy, size_t kRowCount, size_t kCount>
HWY_INLINE void multiply_rows(Block block, const uint8_t* rhs, size_t rhs_tile, uint8_t* out, size_t first,
                              const int32_t* excess) {
  using Result = typename Policy::Result;
  const uint8_t* columns[kCount];
  uint8_t* results[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    const size_t tile = (first + i) / kVectors;
    const size_t lane = (first + i) % kVectors * kLanes;
    columns[i] = rhs + tile * rhs_tile + lane * Policy::kRhsBits / 8;
    results[i] = out + (tile * kTile * kTile + lane) * Result::kSize;
  }
  for (size_t row = 0; row < kTile; row += kRowCount) {
    multiply<Policy, kRowCount, kCount>(block, columns, results, excess + row);
    block.lhs += kRowCount * kUnit;
    for (size_t i = 0; i < kCount; ++i) results[i] += kRowCount * kTile * Result::kSize;
  }
}

template <class Policy>
HWY_INLINE void widen(const uint8_t* lhs, uint64_t steps, uint8_t* widened) {
  constexpr size_t kNarrow = kLanes * Policy::kLhsBits / 8;
  for (size_t at = 0; at < steps * kVectors; ++at)
    Policy::widen(lhs + at * kNarrow, widened + at * kLanes * kUnit);
}

// Uses several partial sums, so that additions do not wait for each other.
template <class Policy>
HWY_INLINE void sum_excess(const Block& block, int32_t* excess) {
  constexpr size_t kSums = 8;
  VI32 sums[kSums];
  VMVX_UNROLL
  for (size_t i = 0; i < kSums; ++i) sums[i] = hn::Zero(i32s);
  uint64_t step = 0;
  for (; step + kSums <= block.steps; step += kSums) {
    VMVX_UNROLL
    for (size_t i = 0; i < kSums; ++i) sums[i] = Policy::add_excess(sums[i], block.lhs + (step + i) * kStep);
  }
  for (; step < block.steps; ++step) sums[0] = Policy::add_excess(sums[0], block.lhs + step * kStep);
  for (size_t i = 1; i < kSums; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  hn::Store(sums[0], i32s, excess);
}

template <class Policy>
void mmt4d(const Mmt4d& operands) {
  if (operands.m0 != kTile || operands.n0 != kTile || operands.k0 != Policy::kK0 || operands.k == 0)
    return scalar::kMmt4d[static_cast<size_t>(Policy::kType)](operands);
  constexpr size_t kLhsStep = kTile * Policy::kLhsBits / 8;
  constexpr size_t kRhsStep = kTile * Policy::kRhsBits / 8;
  const size_t lhs_tile = operands.lhs_stride * (Policy::kLhsBits / Policy::kK0) / 8;
  const size_t rhs_tile = operands.rhs_stride * (Policy::kRhsBits / Policy::kK0) / 8;
  HWY_ALIGN uint8_t widened[Policy::kWidens ? kBlockSteps * kStep : 1];
  HWY_ALIGN int32_t excess[kTile] = {};
  for (uint64_t k = 0; k < operands.k; k += kBlockSteps) {
    Block block = {.lhs = nullptr,
                   .steps = std::min(kBlockSteps, operands.k - k),
                   .lhs_step = kStep,
                   .add = operands.accumulate || k != 0};
    const uint8_t* const rhs = operands.rhs + k * kRhsStep;
    for (uint64_t j = 0; j < operands.n; j += kBlockTiles) {
      const size_t end = std::min(j + kBlockTiles, operands.n) * kVectors;
      for (uint64_t i = 0; i < operands.m; ++i) {
        block.lhs = operands.lhs + i * lhs_tile + k * kLhsStep;
        if constexpr (Policy::kWidens) {
          widen<Policy>(block.lhs, block.steps, widened);
          block.lhs = widened;
        }
        if constexpr (kHasExcess<Policy>) sum_excess<Policy>(block, excess);
        uint8_t* const out = operands.out + i * operands.out_stride * Policy::Result::kSize;
        size_t vector = j * kVectors;
        for (; vector + Policy::kColumns <= end; vector += Policy::kColumns)
          multiply_rows<Policy, Policy::kRows, Policy::kColumns>(block, rhs, rhs_tile, out, vector, excess);
        for (; vector < end; ++vector)
          multiply_rows<Policy, kLastRows, 1>(block, rhs, rhs_tile, out, vector, excess);
      }
    }
  }
}

// The caller's flag selects one of two policies.
template <class Once, class Always>
void mmt4d_rounded(const Mmt4d& operands) {
  operands.skip_rounding ? mmt4d<Once>(operands) : mmt4d<Always>(operands);
}

template <class Policy>
void add(Kernels& kernels, Mmt4dKernel kernel) {
  constexpr auto kIndex = static_cast<size_t>(Policy::kType);
  kernels.mmt4d[kIndex] = kernel;
  kernels.tiles[kIndex] = {kTile, kTile, Policy::kK0};
}

}  // namespace

void add_mmt4d(Kernels& kernels, [[maybe_unused]] bool has_bf16) {
  add<F32Policy>(kernels, mmt4d<F32Policy>);
  add<F16Policy>(kernels, mmt4d<F16Policy>);
  add<F16F16Policy>(kernels, mmt4d_rounded<F16F16Policy, F16RoundedPolicy>);
  add<Bf16Policy>(kernels, mmt4d<Bf16Policy>);
  add<Bf16Bf16Policy>(kernels, mmt4d_rounded<Bf16Bf16Policy, Bf16RoundedPolicy>);
#if HWY_TARGET == HWY_AVX3_DL
  add<S8Policy>(kernels, mmt4d<S8Policy>);
  if (has_bf16) {
    add<Bf16DotPolicy>(kernels, mmt4d<Bf16DotPolicy>);
    add<Bf16Bf16DotPolicy>(kernels, mmt4d_rounded<Bf16Bf16DotPolicy, Bf16RoundedPolicy>);
  }
#endif
  add<S16Policy>(kernels, mmt4d<S16Policy>);
  add<S16U4Policy>(kernels, mmt4d<S16U4Policy>);
  add<S16S8Policy>(kernels, mmt4d<S16S8Policy>);
  add<S8S4Policy>(kernels, mmt4d<S8S4Policy>);
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else
VMVX_NO_KERNELS(add_mmt4d, (Kernels&, bool))
#endif

#if HWY_ONCE
namespace halyard::local::vmvx {

void add_mmt4d_simd(int64_t target, bool has_bf16, Kernels& kernels) {
  VMVX_FUNCTION_FOR(target, add_mmt4d)(kernels, has_bf16);
}

}  // namespace halyard::local::vmvx
#endif
