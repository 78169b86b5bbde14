// Matrix products of tiles with 8 columns and 4 elements of k, of f32 and s8. Programs that do not query the
// tile sizes have these tiles, with 8 rows, or with 1, 2 or 4 if the matrix has few rows.
//
// A group is the smallest number of tiles of the right side that fills vectors. Registers contain its sums;
// an element of the left side, or four of s8, is broadcast and multiplied by columns. Floats are added in the
// order of k, so the columns of a group are transposed: in registers, or for many rows only once, to a panel
// in memory.
#include "simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vmvx/mmt4d_8x4_simd.cpp"
#include <hwy/foreach_target.h>
// These must come after foreach_target.h.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "scalar.h"
#include "simd.h"
#include "transpose-inl.h"

#if VMVX_HAS_KERNELS
HWY_BEFORE_NAMESPACE();
namespace halyard::local::vmvx::HWY_NAMESPACE {
namespace {

constexpr size_t kRow = 8 * 4;  // bytes of a row of an output tile

using F32s = hn::CappedTag<float, 16>;
using I32s = hn::RebindToSigned<F32s>;
using VF32 = hn::Vec<F32s>;
using VI32 = hn::Vec<I32s>;
constexpr F32s f32s;
constexpr I32s i32s;
constexpr size_t kLanes = HWY_LANES(float);

// The number of sums that the registers hold beside other operands.
constexpr size_t kSums = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 16 : 8;
template <size_t kRows, size_t kVectors>
constexpr size_t kGroupsOf = std::clamp<size_t>(kSums / (kRows * kVectors), 1, 4);
constexpr size_t kAhead = 2048;     // bytes to prefetch
constexpr uint64_t kManyRows = 16;  // enough for a panel to pay off

struct Block {
  const uint8_t* lhs;  // the first row
  size_t lhs_step;     // bytes from one tile of k to the next
  uint64_t steps;      // tiles of k
  bool accumulate;
  const int32_t* excess;  // of each row; only of S8 with VNNI
  uint8_t* panel;         // of the first group; only of F32ToPanel
};

// ---- The rows of an output tile, as vectors

// With 16 lanes, a vector contains the rows of two tiles.
template <class D>
HWY_INLINE hn::Vec<D> load_columns(D d, const hn::TFromD<D>* first,
                                   [[maybe_unused]] const hn::TFromD<D>* second) {
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<D> half;
  return hn::Combine(d, hn::LoadU(half, second), hn::LoadU(half, first));
#else
  return hn::LoadU(d, first);
#endif
}
template <class D>
HWY_INLINE void store_columns([[maybe_unused]] D d, hn::Vec<D> value, hn::TFromD<D>* first,
                              [[maybe_unused]] hn::TFromD<D>* second) {
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<D> half;
  hn::StoreU(hn::LowerHalf(half, value), half, first);
  hn::StoreU(hn::UpperHalf(half, value), half, second);
#else
  hn::StoreU(value, d, first);
#endif
}

// ---- Policies
//
// kUnits: the steps of k in a tile. kTiles: the tiles of a group. kVectors: the sums of each row of a group.
// kGroups: the groups that are multiplied together.
// kLhs: the bytes of a row of a left tile, as `lhs` reads it. kRhs: the bytes of a right tile.
// kBlock, kBlockTiles: the tiles of k, and of columns, that are multiplied before the next ones. kMemory: the
// bytes that `prepare` needs.

struct F32 {
  static constexpr Mmt4dType kType = Mmt4dType::f32f32f32;
  using Sum = VF32;
  static constexpr size_t kUnits = 4;
  static constexpr size_t kTiles = std::max<size_t>(kLanes / 8, 1);
  static constexpr size_t kVectors = kTiles * 8 / kLanes;
  template <size_t kRows>
  static constexpr size_t kGroups = kGroupsOf<kRows, kVectors>;
  static constexpr size_t kLhs = 16, kRhs = 128;
  static constexpr size_t kMostRows = std::min<size_t>(kSums / kVectors, 8), kLeastRows = 1;
  static constexpr uint64_t kBlock = UINT64_MAX, kBlockTiles = UINT64_MAX;
  static constexpr size_t kMemory = 1;
  // The columns of one group are transposed and used before the next ones, because registers are few.
  static constexpr bool kGroupByGroup = true;
  // With wide vectors, one or two rows take so little time that prefetching takes more than it saves.
  template <size_t kRows>
  static constexpr bool kPrefetches = kLanes < 16 || kRows > 2;

  using Columns = VF32[kVectors][kUnits];
  // Transposing within blocks of 16 bytes is faster than transposing fully. The columns are then in another
  // order: column p is in lane p % kBlocks * 4 + p / kBlocks.
  static HWY_INLINE void load(const Block&, size_t, const uint8_t* const* tiles, size_t at,
                              Columns& columns) {
    VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      VMVX_UNROLL for (size_t i = 0; i < 4; ++i) {
        const size_t byte = (v * 4 + i) * kLanes * 4;
        columns[v][i] =
            hn::LoadU(f32s, reinterpret_cast<const float*>(tiles[byte / kRhs] + at + byte % kRhs));
      }
      transpose_within_blocks(f32s, columns[v]);
    }
  }
  static HWY_INLINE VF32 column(const Columns& columns, size_t unit, size_t v) { return columns[v][unit]; }
  static HWY_INLINE VF32 lhs(const uint8_t* at, size_t unit) {
    return hn::Set(f32s, vmvx::load<float>(at + unit * 4));
  }
  static HWY_INLINE VF32 add(VF32 sum, VF32 a, VF32 b) { return hn::MulAdd(a, b, sum); }

  static constexpr size_t kBlocks = kLanes / 4;
  struct Order {
    HWY_ALIGN int32_t lanes[kLanes];    // of the columns
    HWY_ALIGN int32_t columns[kLanes];  // of the lanes
  };
  static constexpr Order kOrder = [] {
    Order order = {};
    for (size_t p = 0; p < kLanes; ++p) {
      order.lanes[p] = static_cast<int32_t>(p % kBlocks * 4 + p / kBlocks);
      order.columns[p % kBlocks * 4 + p / kBlocks] = static_cast<int32_t>(p);
    }
    return order;
  }();
  template <size_t kRows>
  static HWY_INLINE void prepare(Block&, uint8_t*) {}
  static HWY_INLINE VF32 first(const Block& block, size_t, uint8_t* const* outs, size_t v) {
    if (!block.accumulate) return hn::Zero(f32s);
    const VF32 value = load_columns(f32s, at(outs[0], v), at(outs[kTiles - 1], v));
    if constexpr (kBlocks == 1) return value;
    return hn::TableLookupLanes(value, hn::SetTableIndices(f32s, kOrder.columns));
  }
  static HWY_INLINE void store(const Block&, const VF32 (&sums)[kVectors], uint8_t* const* outs) {
    VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) {
      VF32 value = sums[v];
      if constexpr (kBlocks != 1)
        value = hn::TableLookupLanes(value, hn::SetTableIndices(f32s, kOrder.lanes));
      store_columns(f32s, value, at(outs[0], v), at(outs[kTiles - 1], v));
    }
  }

 private:
  static HWY_INLINE float* at(uint8_t* out, size_t v) { return reinterpret_cast<float*>(out) + v * kLanes; }
};

// Reads columns that were transposed to a panel: one for each group, in place of its first tile.
struct F32Panel : F32 {
  static constexpr size_t kMostRows = kSums / 2, kLeastRows = kMostRows;
  // AVX2 has just enough registers for 12 sums, 3 columns and an element of the left side.
  template <size_t kRows>
  static constexpr size_t kGroups = HWY_TARGET == HWY_AVX2 ? 3 : kGroupsOf<kRows, kVectors>;
  static constexpr uint64_t kBlock = 64, kBlockTiles = kGroups<kMostRows> * kTiles;
  static constexpr bool kGroupByGroup = false;
  template <size_t>
  static constexpr bool kPrefetches = false;
  static constexpr size_t kStep = kTiles * kRhs;
  static constexpr size_t kBytes = kBlock * kStep;  // of a panel

  using Columns = const float*;
  static HWY_INLINE void load(const Block&, size_t, const uint8_t* const* tiles, size_t at,
                              Columns& columns) {
    columns = reinterpret_cast<const float*>(tiles[0] + at / kRhs * kStep);
  }
  static HWY_INLINE VF32 column(Columns columns, size_t unit, size_t v) {
    return hn::Load(f32s, columns + (unit * kVectors + v) * kLanes);
  }
};

// Writes the panels while it multiplies the first rows. The columns of one group at a time are in registers.
struct F32ToPanel : F32Panel {
  static constexpr bool kGroupByGroup = true;

  using Columns = F32::Columns;
  static HWY_INLINE void load(const Block& block, size_t group, const uint8_t* const* tiles, size_t at,
                              Columns& columns) {
    F32::load(block, group, tiles, at, columns);
    auto* const panel = reinterpret_cast<float*>(block.panel + group * kBytes + at / kRhs * kStep);
    VMVX_UNROLL for (size_t unit = 0; unit < kUnits; ++unit) VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v)
        hn::Store(columns[v][unit], f32s, panel + (unit * kVectors + v) * kLanes);
  }
  static HWY_INLINE VF32 column(const Columns& columns, size_t unit, size_t v) { return columns[v][unit]; }
};

#if HWY_TARGET == HWY_AVX3_DL
// The instruction multiplies unsigned bytes by signed bytes. So 128 is added to the right side, and 128 times
// the sum of the left side is subtracted from the result.
struct S8 {
  static constexpr Mmt4dType kType = Mmt4dType::s8s8s32;
  using Sum = VI32;
  static constexpr size_t kUnits = 1;
  static constexpr size_t kTiles = 2, kVectors = 1;
  template <size_t kRows>
  static constexpr size_t kGroups = kGroupsOf<kRows, kVectors>;
  static constexpr size_t kLhs = 4, kRhs = 32;
  static constexpr size_t kMostRows = 8, kLeastRows = 1;
  static constexpr uint64_t kBlock = 512, kBlockTiles = 32;
  static constexpr size_t kMemory = kMostRows * 4;
  static constexpr bool kGroupByGroup = false;
  template <size_t>
  static constexpr bool kPrefetches = true;

  using Columns = VI32;
  static HWY_INLINE void load(const Block&, size_t, const uint8_t* const* tiles, size_t at,
                              Columns& columns) {
    const VI32 units = load_columns(i32s, reinterpret_cast<const int32_t*>(tiles[0] + at),
                                    reinterpret_cast<const int32_t*>(tiles[1] + at));
    columns = hn::Xor(units, VI32{_mm512_set1_epi8(-128)});
  }
  static HWY_INLINE VI32 column(Columns columns, size_t, size_t) { return columns; }
  static HWY_INLINE VI32 lhs(const uint8_t* at, size_t) { return hn::Set(i32s, vmvx::load<int32_t>(at)); }
  static HWY_INLINE VI32 add(VI32 sum, VI32 a, VI32 b) {
    VMVX_DOT("vpdpbusd", sum, b, a);
    return sum;
  }
  static HWY_INLINE VI32 first(const Block& block, size_t row, uint8_t* const* outs, size_t) {
    const VI32 sum = block.accumulate ? load_columns(i32s, reinterpret_cast<const int32_t*>(outs[0]),
                                                     reinterpret_cast<const int32_t*>(outs[1]))
                                      : hn::Zero(i32s);
    return hn::Sub(sum, hn::Set(i32s, block.excess[row]));
  }
  static HWY_INLINE void store(const Block&, const VI32 (&sums)[1], uint8_t* const* outs) {
    store_columns(i32s, sums[0], reinterpret_cast<int32_t*>(outs[0]), reinterpret_cast<int32_t*>(outs[1]));
  }

  // Uses several partial sums, so that additions do not wait for each other.
  template <size_t kRows>
  static HWY_INLINE void prepare(Block& block, uint8_t* memory) {
    const hn::CappedTag<int32_t, kRows> rows;
    using Rows = hn::Vec<decltype(rows)>;
    const Rows bias = hn::Set(rows, static_cast<int32_t>(0x80808080));
    const auto add = [&](Rows& sum, uint64_t step) HWY_ATTR {
      VMVX_DOT("vpdpbusd", sum, bias,
               hn::LoadU(rows, reinterpret_cast<const int32_t*>(block.lhs + step * block.lhs_step)));
    };
    Rows even = hn::Zero(rows);
    Rows odd = even;
    uint64_t step = 0;
    for (; step + 2 <= block.steps; step += 2) {
      add(even, step);
      add(odd, step + 1);
    }
    if (step < block.steps) add(even, step);
    auto* const excess = reinterpret_cast<int32_t*>(memory);
    hn::StoreU(hn::Add(even, odd), rows, excess);
    block.excess = excess;
  }
};
#else
// A column has two sums, one for each pair of k, which are added at the end.
struct S8 {
  static constexpr Mmt4dType kType = Mmt4dType::s8s8s32;
  using Sum = VI32;
  static constexpr size_t kUnits = 1;
  static constexpr size_t kTiles = 1, kVectors = 16 / kLanes;
  template <size_t kRows>
  static constexpr size_t kGroups = kGroupsOf<kRows, kVectors>;
  static constexpr size_t kRhs = 32;
  static constexpr size_t kMostRows = std::min<size_t>(kSums / kVectors, 8), kLeastRows = 1;
  static constexpr uint64_t kBlock = 512, kBlockTiles = 32;
  static constexpr bool kGroupByGroup = false;
  template <size_t>
  static constexpr bool kPrefetches = true;

#if HWY_ARCH_ARM_A64
  static constexpr size_t kLhs = 4, kMemory = 1;
  using Operand = int8x8_t;
  static HWY_INLINE Operand lhs(const uint8_t* at, size_t) {
    return vreinterpret_s8_s32(vdup_n_s32(vmvx::load<int32_t>(at)));
  }
  static HWY_INLINE Operand load_operand(const uint8_t* at) {
    return vld1_s8(reinterpret_cast<const int8_t*>(at));
  }
  static HWY_INLINE VI32 add(VI32 sum, Operand a, Operand b) {
    return VI32(vpadalq_s16(sum.raw, vmull_s8(a, b)));
  }
  template <size_t kRows>
  static HWY_INLINE void prepare(Block&, uint8_t*) {}
#else
  static constexpr size_t kLhs = 8;  // widened to 16 bits
  static constexpr size_t kMemory = kBlock * kMostRows * kLhs;
  using I16s = hn::RepartitionToNarrow<I32s>;
  using Operand = hn::Vec<I16s>;
  static HWY_INLINE Operand lhs(const uint8_t* at, size_t) {
    return hn::BitCast(I16s(), hn::Set(hn::RepartitionToWide<I32s>(), vmvx::load<int64_t>(at)));
  }
  static HWY_INLINE Operand load_operand(const uint8_t* at) {
    return hn::PromoteTo(I16s(), hn::LoadU(hn::Rebind<int8_t, I16s>(), reinterpret_cast<const int8_t*>(at)));
  }
  static HWY_INLINE VI32 add(VI32 sum, Operand a, Operand b) {
    VI32 none = hn::Zero(i32s);
    return hn::ReorderWidenMulAccumulate(i32s, a, b, sum, none);
  }
  // Widens kRows rows.
  template <size_t kRows>
  static HWY_INLINE void prepare(Block& block, uint8_t* memory) {
    const hn::CappedTag<int16_t, kRows * 4> d16;
    const hn::Rebind<int8_t, decltype(d16)> d8;
    auto* to = reinterpret_cast<int16_t*>(memory);
    for (uint64_t step = 0; step < block.steps; ++step, to += kRows * 4) {
      const auto* const from = reinterpret_cast<const int8_t*>(block.lhs + step * block.lhs_step);
      VMVX_UNROLL for (size_t i = 0; i < kRows * 4; i += hn::Lanes(d16))
          hn::StoreU(hn::PromoteTo(d16, hn::LoadU(d8, from + i)), d16, to + i);
    }
    block.lhs = memory;
    block.lhs_step = kRows * kLhs;
  }
#endif
  using Columns = Operand[kVectors];
  static HWY_INLINE void load(const Block&, size_t, const uint8_t* const* tiles, size_t at,
                              Columns& columns) {
    VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) columns[v] =
        load_operand(tiles[0] + at + v * kLanes * 2);
  }
  static HWY_INLINE Operand column(const Columns& columns, size_t, size_t v) { return columns[v]; }
  static HWY_INLINE VI32 first(const Block&, size_t, uint8_t* const*, size_t) { return hn::Zero(i32s); }
  static HWY_INLINE void store(const Block& block, const VI32 (&sums)[kVectors], uint8_t* const* outs) {
    const hn::CappedTag<int32_t, 8> d;
    const auto both = [&](size_t v) HWY_ATTR {
      const hn::RepartitionToWide<hn::RebindToUnsigned<I32s> > pairs;
      return hn::Add(sums[v], hn::BitCast(i32s, hn::ShiftRight<32>(hn::BitCast(pairs, sums[v]))));
    };
    VMVX_UNROLL for (size_t i = 0; i < 8; i += HWY_MIN(kLanes, 8)) {
      const size_t v = i * 2 / kLanes;
      const VI32 found = hn::ConcatEven(i32s, both((v + 1) % kVectors), both(v));
      auto* const at = reinterpret_cast<int32_t*>(outs[0]) + i;
#if HWY_TARGET == HWY_AVX3
      const auto sum = hn::LowerHalf(d, found);
#else
      const auto sum = found;
#endif
      hn::StoreU(block.accumulate ? hn::Add(sum, hn::LoadU(d, at)) : sum, d, at);
    }
  }
};
#endif

// ---- The loops

// Products of kRows rows and kGroups groups.
template <class Policy, size_t kRows, size_t kGroups>
HWY_INLINE void multiply(const Block& block, const uint8_t* const* tiles, uint8_t* const* outs) {
  constexpr size_t kVectors = Policy::kVectors;
  typename Policy::Sum sums[kRows][kGroups][kVectors];
  const auto out_of = [&](size_t row, size_t group, uint8_t*(&at)[Policy::kTiles]) {
    for (size_t tile = 0; tile < Policy::kTiles; ++tile)
      at[tile] = outs[group * Policy::kTiles + tile] + row * kRow;
  };
  VMVX_UNROLL for (size_t row = 0; row < kRows; ++row) {
    VMVX_UNROLL for (size_t group = 0; group < kGroups; ++group) {
      uint8_t* at[Policy::kTiles];
      out_of(row, group, at);
      VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) sums[row][group][v] =
          Policy::first(block, row, at, v);
    }
  }
  const uint8_t* lhs = block.lhs;
  size_t rhs_at = 0;
  for (uint64_t step = 0; step < block.steps; ++step, lhs += block.lhs_step, rhs_at += Policy::kRhs) {
    if (Policy::template kPrefetches<kRows> && (Policy::kRhs % 64 == 0 || step % 2 == 0)) {
      VMVX_UNROLL for (size_t tile = 0; tile < kGroups * Policy::kTiles; ++tile) {
        VMVX_UNROLL for (size_t line = 0; line < Policy::kRhs; line += 64)
            hwy::Prefetch(tiles[tile] + rhs_at + kAhead + line);
      }
    }
    if constexpr (Policy::kGroupByGroup) {
      VMVX_UNROLL for (size_t group = 0; group < kGroups; ++group) {
        typename Policy::Columns columns;
        Policy::load(block, group, tiles + group * Policy::kTiles, rhs_at, columns);
        VMVX_UNROLL for (size_t unit = 0; unit < Policy::kUnits; ++unit)
            VMVX_UNROLL for (size_t row = 0; row < kRows; ++row) {
          const auto element = Policy::lhs(lhs + row * Policy::kLhs, unit);
          VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) sums[row][group][v] =
              Policy::add(sums[row][group][v], element, Policy::column(columns, unit, v));
        }
        // Keeps the compiler from saving broadcast elements for the next group.
        if constexpr (kRows > 1) asm volatile("" : : : "memory");
      }
    } else {
      typename Policy::Columns columns[kGroups];
      VMVX_UNROLL for (size_t group = 0; group < kGroups; ++group)
          Policy::load(block, group, tiles + group * Policy::kTiles, rhs_at, columns[group]);
      VMVX_UNROLL for (size_t unit = 0; unit < Policy::kUnits; ++unit)
          VMVX_UNROLL for (size_t row = 0; row < kRows; ++row) {
        const auto element = Policy::lhs(lhs + row * Policy::kLhs, unit);
        VMVX_UNROLL for (size_t group = 0; group < kGroups; ++group)
            VMVX_UNROLL for (size_t v = 0; v < kVectors; ++v) sums[row][group][v] =
                Policy::add(sums[row][group][v], element, Policy::column(columns[group], unit, v));
      }
    }
  }
  VMVX_UNROLL for (size_t row = 0; row < kRows; ++row) {
    VMVX_UNROLL for (size_t group = 0; group < kGroups; ++group) {
      uint8_t* at[Policy::kTiles];
      out_of(row, group, at);
      Policy::store(block, sums[row][group], at);
    }
  }
}

// A range of tiles of the right side, and the tiles of the output in one row of tiles.
struct TileRange {
  const uint8_t* rhs;
  size_t rhs_tile, out_tile;  // bytes
  uint8_t* out;
  uint64_t count;
};

// The tiles for one call of `multiply`. The ones behind the last tile repeat the first one, and their output
// is not used.
template <size_t kCount>
struct Tiles {
  const uint8_t* rhs[kCount];
  uint8_t* out[kCount];

  Tiles(const TileRange& range, uint64_t first, uint8_t* unused) {
    for (size_t i = 0; i < kCount; ++i) {
      const bool used = first + i < range.count;
      rhs[i] = range.rhs + (used ? first + i : first) * range.rhs_tile;
      out[i] = used ? range.out + (first + i) * range.out_tile : unused;
    }
  }
};

// All columns of the range, of kRows rows.
template <class Policy, size_t kRows>
void multiply_rows(Block block, const TileRange& range) {
  constexpr size_t kGroups = Policy::template kGroups<kRows>;
  constexpr size_t kTiles = kGroups * Policy::kTiles;
  HWY_ALIGN uint8_t memory[Policy::kMemory];
  Policy::template prepare<kRows>(block, memory);
  HWY_ALIGN uint8_t unused[kRows * kRow] = {};
  uint64_t tile = 0;
  // Also for fewer groups, if more than half of them are used.
  for (; tile + kGroups / 2 * Policy::kTiles < range.count; tile += kTiles) {
    const Tiles<kTiles> tiles(range, tile, unused);
    multiply<Policy, kRows, kGroups>(block, tiles.rhs, tiles.out);
  }
  if constexpr (kGroups > 1) {
    for (; tile < range.count; tile += Policy::kTiles) {
      const Tiles<Policy::kTiles> tiles(range, tile, unused);
      multiply<Policy, kRows, 1>(block, tiles.rhs, tiles.out);
    }
  }
}

template <class Policy, size_t kRows>
void pass_rows(Block& block, TileRange& range, uint32_t& rows) {
  block.lhs += kRows * Policy::kRhs / 8;
  range.out += kRows * kRow;
  rows -= kRows;
}

template <class Policy, size_t kRows = Policy::kMostRows>
void multiply_tile(Block block, TileRange range, uint32_t rows) {
  for (; rows >= kRows; pass_rows<Policy, kRows>(block, range, rows))
    multiply_rows<Policy, kRows>(block, range);
  if constexpr (kRows > Policy::kLeastRows) multiply_tile<Policy, kRows / 2>(block, range, rows);
}

// `First` multiplies the first rows, and may write the panels that Policy reads for the others.
template <class Policy, class First = Policy>
void multiply_all(const Mmt4d& operands) {
  if (operands.k == 0) return scalar::kMmt4d[static_cast<size_t>(Policy::kType)](operands);
  constexpr size_t kElement = Policy::kRhs / 32;
  constexpr bool kHasPanels = !std::is_same_v<Policy, First>;
  // A panel is written by one product: the columns of a range are those of all groups, or of the first one.
  constexpr size_t kGroups = First::template kGroups<First::kMostRows>;
  static_assert(!kHasPanels || (Policy::kBlockTiles == kGroups * First::kTiles && kGroups <= 3));
  constexpr size_t kPanel = kHasPanels ? Policy::kBlockTiles * Policy::kBlock * Policy::kRhs : 1;
  HWY_ALIGN uint8_t panel[kPanel];
  const size_t lhs_step = operands.m0 * Policy::kRhs / 8;
  for (uint64_t k = 0; k < operands.k; k += Policy::kBlock) {
    Block block = {.lhs = nullptr,
                   .lhs_step = lhs_step,
                   .steps = std::min(Policy::kBlock, operands.k - k),
                   .accumulate = operands.accumulate || k != 0,
                   .excess = nullptr,
                   .panel = panel};
    for (uint64_t j = 0; j < operands.n; j += Policy::kBlockTiles) {
      TileRange range = {.rhs = operands.rhs + j * operands.rhs_stride * kElement + k * Policy::kRhs,
                         .rhs_tile = operands.rhs_stride * kElement,
                         .out_tile = operands.m0 * kRow,
                         .out = nullptr,
                         .count = std::min(Policy::kBlockTiles, operands.n - j)};
      for (uint64_t i = 0; i < operands.m; ++i) {
        block.lhs = operands.lhs + i * operands.lhs_stride * kElement + k * lhs_step;
        range.out = operands.out + i * operands.out_stride * 4 + j * range.out_tile;
        uint32_t rows = operands.m0;
        if (kHasPanels && i == 0) {
          multiply_rows<First, First::kMostRows>(block, range);
          pass_rows<First, First::kMostRows>(block, range, rows);
          range.rhs = panel;
          range.rhs_tile = Policy::kBlock * Policy::kRhs;
        }
        multiply_tile<Policy>(block, range, rows);
      }
    }
  }
}

void mmt4d_f32(const Mmt4d& operands) {
  const bool many = operands.m * operands.m0 >= kManyRows && operands.m0 % F32Panel::kMostRows == 0;
  many ? multiply_all<F32Panel, F32ToPanel>(operands) : multiply_all<F32>(operands);
}

}  // namespace

void add_mmt4d_8x4(Kernels& kernels) {
  kernels.mmt4d_8x4[static_cast<size_t>(Mmt4dType::f32f32f32)] = mmt4d_f32;
  kernels.mmt4d_8x4[static_cast<size_t>(Mmt4dType::s8s8s32)] = multiply_all<S8>;
#if HWY_TARGET != HWY_AVX3_DL
  kernels.tiles[static_cast<size_t>(Mmt4dType::s8s8s32)] = {8, 8, 4};
#endif
}

}  // namespace halyard::local::vmvx::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#else
VMVX_NO_KERNELS(add_mmt4d_8x4, (Kernels&))
#endif

#if HWY_ONCE
namespace halyard::local::vmvx {

void add_mmt4d_8x4_simd(int64_t target, Kernels& kernels) {
  VMVX_FUNCTION_FOR(target, add_mmt4d_8x4)(kernels);
}

}  // namespace halyard::local::vmvx
#endif
