// Packing and unpacking: the plain loops against the definition in exec-vmvx.md, 5.7, and every instruction
// set against the plain loops.
#include <cstring>
#include <random>
#include <vector>

#include "vmvx_testing.h"

namespace halyard::local::vmvx {
namespace {

struct TilesCase {
  uint64_t size0, size1, t0, t1;
  uint64_t spare;  // additional tiles, and additional elements between rows
  uint64_t stride1;
  bool outer_transposed, inner_transposed;

  Tiling tiling() const {
    const uint64_t extent0 = inner_transposed ? t1 : t0;
    const uint64_t extent1 = inner_transposed ? t0 : t1;
    const uint64_t grid0 = (size0 + extent0 - 1) / extent0 + spare % 2;
    const uint64_t grid1 = (size1 + extent1 - 1) / extent1 + spare / 2 % 2;
    const uint64_t o0 = outer_transposed ? grid1 : grid0;
    const uint64_t o1 = outer_transposed ? grid0 : grid1;
    return {.o0 = o0,
            .o1 = o1,
            .t0 = t0,
            .t1 = t1,
            .tile_stride0 = o1 * t0 * t1 + spare,
            .stride0 = size1 * stride1 + spare,
            .stride1 = stride1,
            .size0 = size0,
            .size1 = size1,
            .outer_transposed = outer_transposed,
            .inner_transposed = inner_transposed};
  }
};

std::string text(const TilesCase& c) {
  return fmt::format("{}x{} tiles {}x{} spare {} stride1 {}{}{}", c.size0, c.size1, c.t0, c.t1, c.spare,
                     c.stride1, c.outer_transposed ? " outer" : "", c.inner_transposed ? " inner" : "");
}

std::vector<TilesCase> cases() {
  std::vector<TilesCase> list;
  constexpr uint64_t kTiles[][2] = {{16, 1}, {1, 16}, {16, 16}, {16, 4}, {16, 2}, {8, 1},
                                    {4, 4},  {8, 8},  {1, 1},   {3, 5},  {4, 1},  {2, 16},
                                    {16, 8}, {32, 1}, {8, 4},   {1, 4},  {1, 8}};
  constexpr uint64_t kSizes[][2] = {{1, 1}, {16, 16}, {32, 48}, {33, 65}, {15, 17}, {64, 320}, {5, 100}};
  for (const auto& [t0, t1] : kTiles)
    for (const auto& [size0, size1] : kSizes)
      for (const uint64_t spare : {0, 1, 2, 3})
        for (const uint64_t stride1 : {1, 2})
          for (const int flags : {0, 1, 2, 3})
            if (stride1 == 1 || spare == 3)
              list.push_back({size0, size1, t0, t1, spare, stride1, (flags & 2) != 0, (flags & 1) != 0});
  return list;
}

class VmvxTiles : public VmvxKernels {};
VMVX_FOR_EVERY_INSTRUCTION_SET(VmvxTiles);

constexpr size_t kShift = 3;  // operands are unaligned

// Random bytes, generated once.
std::vector<uint8_t> random_bytes(size_t count) {
  static const std::vector<uint8_t> kBytes = [] {
    std::vector<uint8_t> bytes(size_t{1} << 25);
    std::mt19937 random(1);
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
      const auto word = static_cast<uint32_t>(random());
      std::memcpy(&bytes[i], &word, sizeof word);
    }
    return bytes;
  }();
  EXPECT_LE(count, kBytes.size());
  return {kBytes.begin(), kBytes.begin() + static_cast<ptrdiff_t>(count)};
}

template <typename T>
void round_trip(const Kernels& kernels, size_t log2) {
  constexpr uint64_t kPadding = 0x0102030405060708;
  for (const TilesCase& c : cases()) {
    const Tiling tiling = c.tiling();
    const std::vector<uint8_t> matrix = random_bytes(kShift + tiling.size0 * tiling.stride0 * sizeof(T));
    std::vector<uint8_t> tiles(kShift + tiling.o0 * tiling.tile_stride0 * sizeof(T) + 9, 0xEE);
    std::vector<uint8_t> plain = tiles;
    kernels.pack[log2](matrix.data() + kShift, tiles.data() + kShift, tiling, kPadding);
    scalar_kernels().pack[log2](matrix.data() + kShift, plain.data() + kShift, tiling, kPadding);
    ASSERT_TRUE(tiles == plain) << text(c) << " of " << sizeof(T);

    std::vector<uint8_t> back(matrix.size(), 0xEE), plain_back = back;
    kernels.unpack[log2](tiles.data() + kShift, back.data() + kShift, tiling);
    scalar_kernels().unpack[log2](tiles.data() + kShift, plain_back.data() + kShift, tiling);
    ASSERT_TRUE(back == plain_back) << text(c) << " of " << sizeof(T);
    const uint64_t together = tiling.stride1 == 1 ? tiling.size1 : 1;  // elements
    for (uint64_t i = 0; i < tiling.size0; ++i)
      for (uint64_t j = 0; j < tiling.size1; j += together) {
        const uint64_t at = kShift + (i * tiling.stride0 + j * tiling.stride1) * sizeof(T);
        if (std::memcmp(back.data() + at, matrix.data() + at, together * sizeof(T)) != 0)
          FAIL() << text(c) << " of " << sizeof(T);
      }
  }
}

TEST_P(VmvxTiles, RoundTripsAgree) {
  round_trip<uint8_t>(kernels(), 0);
  round_trip<uint16_t>(kernels(), 1);
  round_trip<uint32_t>(kernels(), 2);
}

// Both operands in one buffer, the tiles `distance` bytes after the matrix.
template <typename T>
void overlapping(const Kernels& kernels, size_t log2, const TilesCase& c, ptrdiff_t distance) {
  const Tiling tiling = c.tiling();
  const uint64_t size =
      tiling.size0 * tiling.stride0 * sizeof(T) + tiling.o0 * tiling.tile_stride0 * sizeof(T);
  const std::vector<uint8_t> bytes = random_bytes(2 * size + 64);
  const auto run = [&](const Kernels& by, bool packs) {
    std::vector<uint8_t> both = bytes;
    uint8_t* const matrix = both.data() + size / 2 + 32;
    uint8_t* const tiles = matrix + distance;
    if (packs)
      by.pack[log2](matrix, tiles, tiling, 0x0102030405060708);
    else
      by.unpack[log2](tiles, matrix, tiling);
    return both;
  };
  for (const bool packs : {true, false})
    ASSERT_TRUE(run(kernels, packs) == run(scalar_kernels(), packs))
        << text(c) << " of " << sizeof(T) << ", " << distance << " bytes after";
}

TEST_P(VmvxTiles, OverlappingOperandsAgree) {
  for (const TilesCase& c : cases()) {
    if (c.size0 * c.size1 > 2048 || c.spare % 3 != 0) continue;
    const auto bytes = static_cast<ptrdiff_t>(c.size0 * c.size1);
    for (const ptrdiff_t distance : {ptrdiff_t{0}, ptrdiff_t{4}, ptrdiff_t{-4}, bytes / 2, -bytes / 2}) {
      overlapping<uint8_t>(kernels(), 0, c, distance);
      overlapping<uint16_t>(kernels(), 1, c, distance);
      overlapping<uint32_t>(kernels(), 2, c, distance);
    }
  }
}

// The start of a cache line; there are 64 spare bytes.
uint8_t* line(std::vector<uint8_t>& bytes) {
  return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64) % 64;
}

// Outputs that exceed the caches bypass them, if they are aligned to cache lines.
template <typename T>
void large_round_trip(const Kernels& kernels, size_t log2, const TilesCase& c) {
  const Tiling tiling = c.tiling();
  std::vector<uint8_t> matrix = random_bytes(64 + tiling.size0 * tiling.stride0 * sizeof(T));
  const size_t size = tiling.o0 * tiling.tile_stride0 * sizeof(T);
  std::vector<uint8_t> tiles(64 + size), plain(64 + size);
  kernels.pack[log2](line(matrix), line(tiles), tiling, 0x11);
  scalar_kernels().pack[log2](line(matrix), line(plain), tiling, 0x11);
  ASSERT_EQ(std::memcmp(line(tiles), line(plain), size), 0) << text(c);

  std::vector<uint8_t> back(matrix.size());
  kernels.unpack[log2](line(tiles), line(back), tiling);
  ASSERT_EQ(std::memcmp(line(back), line(matrix), tiling.size0 * tiling.stride0 * sizeof(T)), 0) << text(c);
}

TEST_P(VmvxTiles, LargeMatricesAgree) {
  constexpr TilesCase kWords[] = {
      {2065, 2109, 16, 1, 0, 1, true, true},     // the right side of a product
      {2065, 2109, 16, 1, 0, 1, false, false},   // the left side
      {2065, 2112, 16, 16, 0, 1, false, false},  // a result
      {2065, 2112, 16, 16, 0, 1, true, false},
      {209, 21008, 16, 16, 0, 1, false, false},  // with large rows of tiles too
      {2065, 2109, 8, 4, 0, 1, true, true},
      {2065, 2109, 8, 4, 0, 1, true, false},
      {2065, 2109, 8, 4, 0, 1, false, true},
  };
  for (const TilesCase& c : kWords) large_round_trip<uint32_t>(kernels(), 2, c);
  large_round_trip<uint8_t>(kernels(), 0, {4102, 4205, 16, 4, 0, 1, true, true});
  large_round_trip<uint8_t>(kernels(), 0, {4102, 4205, 8, 4, 0, 1, true, true});
  large_round_trip<uint8_t>(kernels(), 0, {4102, 4205, 8, 4, 0, 1, false, true});
  // All rows of the matrix are the same row.
  Tiling tiling = kWords[0].tiling();
  tiling.stride0 = 0;
  const std::vector<uint8_t> row(tiling.size1 * 4, 0x5A);
  const size_t size = tiling.o0 * tiling.tile_stride0 * 4;
  std::vector<uint8_t> tiles(64 + size), plain(64 + size);
  kernels().pack[2](row.data(), line(tiles), tiling, 0x5A5A5A5A);
  scalar_kernels().pack[2](row.data(), line(plain), tiling, 0x5A5A5A5A);
  EXPECT_EQ(std::memcmp(line(tiles), line(plain), size), 0);
}

// Checks the definition element by element.
TEST_P(VmvxTiles, ElementsAreAtTheirPositions) {
  for (const TilesCase& c : cases()) {
    const Tiling tiling = c.tiling();
    std::vector<uint32_t> matrix(tiling.size0 * tiling.stride0), tiles(tiling.o0 * tiling.tile_stride0, 9);
    for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<uint32_t>(i + 1000);
    kernels().pack[2](reinterpret_cast<uint8_t*>(matrix.data()), reinterpret_cast<uint8_t*>(tiles.data()),
                      tiling, 5);
    const uint64_t extent0 = c.inner_transposed ? c.t1 : c.t0;
    const uint64_t extent1 = c.inner_transposed ? c.t0 : c.t1;
    uint64_t padding = 0;
    for (const uint32_t value : tiles) padding += value == 5 ? 1 : 0;
    EXPECT_EQ(padding, tiling.o0 * tiling.o1 * c.t0 * c.t1 - c.size0 * c.size1) << text(c);
    for (uint64_t row = 0; row < c.size0; ++row)
      for (uint64_t column = 0; column < c.size1; ++column) {
        const uint64_t x = row / extent0, p = row % extent0, y = column / extent1, q = column % extent1;
        const uint64_t tile = c.outer_transposed ? y * tiling.tile_stride0 + x * c.t0 * c.t1
                                                 : x * tiling.tile_stride0 + y * c.t0 * c.t1;
        const uint64_t within = c.inner_transposed ? q * c.t1 + p : p * c.t1 + q;
        ASSERT_EQ(tiles[tile + within], matrix[row * tiling.stride0 + column * tiling.stride1]) << text(c);
      }
  }
}

TEST_P(VmvxTiles, OnlyPadding) {
  const Tiling tiling = {.o0 = 2,
                         .o1 = 2,
                         .t0 = 16,
                         .t1 = 1,
                         .tile_stride0 = 32,
                         .stride0 = 4,
                         .stride1 = 1,
                         .size0 = 0,
                         .size1 = 2,
                         .outer_transposed = false,
                         .inner_transposed = false};
  std::vector<uint32_t> tiles(64, 1);
  kernels().pack[2](nullptr, reinterpret_cast<uint8_t*>(tiles.data()), tiling, 7);
  EXPECT_EQ(tiles, std::vector<uint32_t>(64, 7));
}

}  // namespace
}  // namespace halyard::local::vmvx
