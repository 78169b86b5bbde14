// The choice of a tile, for all small sizes.
#include "codegen/contraction/tile.h"

#include <gtest/gtest.h>

namespace halyard::jit::contraction {
namespace {

constexpr Registers kRegisters[] = {{16, 4}, {16, 8}, {32, 16}, {32, 2}, {16, 32}};

// Every output of every row is in one tile, by the rule of Writer: of what is left, each tile takes all it
// can.
uint64_t rest_after(uint64_t count, const std::vector<uint64_t>& tiles) {
  for (const uint64_t tile : tiles) count %= tile;
  return count;
}
std::vector<uint64_t> counts_of(const std::vector<Tiling::Outputs>& outputs) {
  std::vector<uint64_t> counts;
  for (const Tiling::Outputs& tile : outputs) counts.push_back(tile.count());
  return counts;
}

TEST(ContractionTile, LeavesNoRest) {
  for (const Registers& registers : kRegisters) {
    for (uint64_t count = 1; count < 200; ++count) {
      for (const bool is_strided : {false, true}) {
        for (const bool is_transposed : {false, true}) {
          const Size known = {count, count, 1, is_strided, is_strided && is_transposed};
          const Tiling tiling = choose_tiling(known, registers);
          EXPECT_EQ(rest_after(count, tiling.rows), 0u) << count;
          EXPECT_EQ(rest_after(count, counts_of(tiling.outputs)), 0u) << count;
          const uint64_t multiple = count & -count;
          for (const uint64_t most : {uint64_t{0}, count, count + 3, 2 * count}) {
            Size unknown = {0, 0, multiple, is_strided, is_strided && is_transposed};
            unknown.most_outputs = most;
            const Tiling any = choose_tiling(unknown, registers);
            EXPECT_EQ(rest_after(count, any.rows), 0u) << count;
            EXPECT_EQ(rest_after(count, counts_of(any.outputs)), 0u) << count;
            EXPECT_TRUE(most == 0 || any.outputs.front().count() <= std::max<uint64_t>(most, 4)) << most;
          }
        }
      }
    }
  }
}

TEST(ContractionTile, FitsInRegisters) {
  for (const Registers& registers : kRegisters) {
    for (uint64_t outputs = 0; outputs < 200; ++outputs) {
      const Tiling tiling = choose_tiling({0, outputs, 1, false, false}, registers);
      const Tiling::Outputs tile = tiling.outputs.front();
      EXPECT_LE(tiling.rows.front() * tile.vectors + tile.vectors + 2, registers.count) << outputs;
    }
  }
}

TEST(ContractionTile, IsThatOfKnownKernels) {
  // A convolution of 7 by 7 by 512, tiles of 64 outputs, with AVX-512 and with AVX2.
  const Tiling wide = choose_tiling({7, 64, 1, false, false}, {32, 16});
  EXPECT_EQ(wide.rows, std::vector<uint64_t>{7});
  EXPECT_EQ(counts_of(wide.outputs), std::vector<uint64_t>{32});
  const Tiling narrow = choose_tiling({7, 64, 1, false, false}, {16, 8});
  EXPECT_EQ(narrow.rows, (std::vector<uint64_t>{6, 1}));
  EXPECT_EQ(counts_of(narrow.outputs), std::vector<uint64_t>{16});
  // One row and at most 64 outputs, of which the last workgroup has 40.
  const Tiling row = choose_tiling({.rows = 1, .most_outputs = 64}, {32, 16});
  EXPECT_EQ(counts_of(row.outputs), (std::vector<uint64_t>{64, 32, 16, 4, 1}));
  // Of several rows, 24 outputs are two vectors that share 8 of them; of one row, three vectors of 8, whose
  // sums do not wait for each other.
  for (const uint64_t outputs : {24, 28, 17}) {
    const Tiling tiling = choose_tiling({9, outputs, 1, false, false}, {32, 16});
    EXPECT_EQ(counts_of(tiling.outputs), std::vector<uint64_t>{outputs});
    const Tiling::Outputs tile = tiling.outputs.front();
    EXPECT_EQ(tile.vectors, 2u);
    EXPECT_EQ(tile.first(0), 0u);
    EXPECT_EQ(tile.first(1), outputs - 16);
  }
  EXPECT_EQ(counts_of(choose_tiling({9, 56, 1, false, false}, {32, 16}).outputs),
            (std::vector<uint64_t>{32, 24}));
  EXPECT_EQ(counts_of(choose_tiling({9, 12, 1, false, false}, {16, 8}).outputs), std::vector<uint64_t>{12});
  // Three vectors leave no rest of 48 outputs, if a panel of them is small.
  const auto first_of = [](const Size& size, const Registers& registers) {
    return choose_tiling(size, registers).outputs.front().count();
  };
  EXPECT_EQ(first_of({.rows = 56, .outputs = 48, .terms = {24}}, {32, 16}), 48u);
  EXPECT_EQ(first_of({.rows = 56, .outputs = 40, .terms = {24}}, {32, 16}), 40u);
  EXPECT_EQ(first_of({.rows = 56, .outputs = 48, .can_pack = true, .terms = {256}}, {32, 16}), 32u);
  EXPECT_EQ(first_of({.rows = 56, .outputs = 24, .terms = {24}}, {16, 8}), 16u);
  const Tiling thirds = choose_tiling({1, 24, 1, false, false}, {32, 16});
  EXPECT_EQ(thirds.outputs.front().lanes, 8u);
  EXPECT_EQ(thirds.outputs.front().vectors, 3u);
}

TEST(ContractionTile, OfElementsIsARowThatThreadsShare) {
  const auto elements = [](uint64_t outer_rows, uint64_t rows, uint64_t outputs) {
    return choose_tiling({.rows = rows, .outputs = outputs, .outer_rows = outer_rows, .is_elementwise = true},
                         {32, 16});
  };
  const Tiling copy = elements(56, 56, 64);
  EXPECT_EQ(copy.rows, std::vector<uint64_t>{1});
  EXPECT_EQ(counts_of(copy.outputs), std::vector<uint64_t>{64});
  EXPECT_TRUE(copy.is_shared);
  EXPECT_EQ(copy.group, 2u);
  EXPECT_FALSE(elements(28, 28, 64).is_shared) << "too few";
  EXPECT_FALSE(elements(1, 1, 1 << 20).is_shared) << "one row";
  EXPECT_FALSE(elements(0, 56, 64).is_shared) << "unknown rows";
}

// The number of terms of a block.
uint64_t block_of(const Tiling& tiling, const std::vector<uint64_t>& terms) {
  uint64_t block = 1;
  for (size_t loop = tiling.outer_terms; loop < terms.size(); ++loop)
    block *= loop == tiling.outer_terms && tiling.block != 0 ? tiling.block : terms[loop];
  return block;
}

TEST(ContractionTile, BlocksAreNeitherSmallNorLarge) {
  for (uint64_t outer = 1; outer < 12; ++outer) {
    for (uint64_t inner = 1; inner < 1200; inner += inner < 80 ? 1 : 37) {
      const std::vector<uint64_t> terms = {outer, 3, inner};
      const Tiling tiling = choose_tiling({.rows = 64, .outputs = 64, .terms = terms}, {32, 16});
      const uint64_t block = block_of(tiling, terms), all = outer * 3 * inner;
      EXPECT_LE(block, 256u) << outer << ' ' << inner;
      EXPECT_GE(block, std::min<uint64_t>(all, 64)) << outer << ' ' << inner;
      EXPECT_TRUE(tiling.outer_terms < terms.size()) << outer << ' ' << inner;
      EXPECT_TRUE(tiling.block == 0 || tiling.block <= terms[tiling.outer_terms]) << outer << ' ' << inner;
    }
  }
}

TEST(ContractionTile, HasOneBlockWhereNothingIsReadAgain) {
  for (const Size& size : {Size{.rows = 1, .outputs = 64, .terms = {4608}},    // one row
                           Size{.rows = 7, .outputs = 64, .terms = {9, 512}},  // one tile of rows
                           Size{.rows = 64, .outputs = 64, .terms = {0}},      // terms are not known
                           Size{.rows = 64, .outputs = 64, .terms = {0, 512}}}) {
    const Tiling tiling = choose_tiling(size, {32, 16});
    EXPECT_EQ(tiling.outer_terms, 0u);
    EXPECT_EQ(tiling.block, 0u);
  }
}

TEST(ContractionTile, PacksWhatManyRowsRead) {
  const auto is_packed = [](const Size& size) { return choose_tiling(size, {32, 16}).is_packed; };
  EXPECT_TRUE(is_packed({.rows = 64, .outputs = 64, .can_pack = true, .terms = {768}}));
  EXPECT_TRUE(is_packed({.rows = 7, .outputs = 64, .can_pack = true, .outer_rows = 7, .terms = {3, 3, 512}}));
  EXPECT_TRUE(is_packed({.rows = 0, .outputs = 64, .can_pack = true, .terms = {768}})) << "unknown rows";
  EXPECT_FALSE(is_packed({.rows = 64, .outputs = 64, .terms = {768}})) << "B differs between rows";
  EXPECT_FALSE(is_packed({.rows = 64, .outputs = 64, .can_pack = true, .terms = {0}})) << "unknown terms";
  EXPECT_FALSE(is_packed({.rows = 9, .outputs = 64, .can_pack = true, .terms = {768}})) << "few rows";
  EXPECT_FALSE(is_packed({.rows = 64, .outputs = 64, .can_pack = true, .terms = {9}})) << "few terms";
  // A transposed B is also packed for few rows, and then read as if it were contiguous.
  const Tiling transposed = choose_tiling(
      {.rows = 9, .outputs = 64, .is_strided = true, .is_transposed = true, .can_pack = true, .terms = {768}},
      {32, 16});
  EXPECT_TRUE(transposed.is_packed);
  EXPECT_EQ(transposed.outputs.front().count(), 32u);
}

TEST(ContractionTile, PrefetchesForFewRows) {
  const auto prefetches = [](const Size& size) { return choose_tiling(size, {32, 16}).prefetches; };
  EXPECT_TRUE(prefetches({.rows = 64, .outputs = 64, .can_pack = true, .terms = {768}}));
  EXPECT_TRUE(prefetches({.rows = 14, .outputs = 64, .can_pack = true, .outer_rows = 14, .terms = {9, 256}}));
  EXPECT_TRUE(prefetches({.rows = 0, .outputs = 64, .can_pack = true, .terms = {768}})) << "unknown rows";
  EXPECT_FALSE(
      prefetches({.rows = 28, .outputs = 64, .can_pack = true, .outer_rows = 28, .terms = {9, 128}}));
  EXPECT_FALSE(prefetches({.rows = 9, .outputs = 64, .can_pack = true, .terms = {768}})) << "not packed";
}

TEST(ContractionTile, PanelsAreSmall) {
  for (const uint64_t rows : {0, 1, 7, 64}) {
    for (const uint64_t outer_rows : {0, 1, 64}) {
      for (const uint64_t terms : {64, 256, 257, 4096}) {
        for (const uint64_t outputs : {0, 16, 64, 128, 1000}) {
          const Size size = {
              .rows = rows, .outputs = outputs, .can_pack = true, .outer_rows = outer_rows, .terms = {terms}};
          const Tiling tiling = choose_tiling(size, {32, 16});
          if (tiling.is_packed) {
            EXPECT_LE(tiling.terms_of_block * tiling.outputs.front().count() * 4, 32u << 10);
          }
        }
      }
    }
  }
}

TEST(ContractionTile, GroupsAreTilesOfBoundedWork) {
  constexpr uint64_t kMost = uint64_t{1} << 25;  // terms
  for (uint64_t rows = 1; rows < 300; rows += 7) {
    for (const uint64_t terms :
         {uint64_t{1}, uint64_t{768}, uint64_t{1} << 23, uint64_t{1} << 40, UINT64_MAX}) {
      const Tiling one = choose_tiling({.rows = rows, .outputs = 64, .terms = {terms}}, {32, 16});
      EXPECT_EQ(one.group % one.rows.front(), 0u) << rows << ' ' << terms;
      EXPECT_TRUE(one.group == one.rows.front() || one.group * 64 * terms <= kMost) << rows << ' ' << terms;
      const Tiling two =
          choose_tiling({.rows = rows, .outputs = 64, .outer_rows = 9, .terms = {terms}}, {32, 16});
      EXPECT_TRUE(two.group == 1 || two.group * rows * 64 * terms <= kMost) << rows << ' ' << terms;
    }
  }
}

TEST(ContractionTile, SumsOfBlocksStayInTheCache) {
  const Size size = {.rows = 56, .outputs = 64, .can_pack = true, .outer_rows = 56, .terms = {9, 64}};
  EXPECT_EQ(choose_tiling(size, {32, 16}).together, 9u);  // of 3,584 sums
  const Size one_block = {.rows = 56, .outputs = 64, .can_pack = true, .outer_rows = 56, .terms = {64}};
  EXPECT_EQ(choose_tiling(one_block, {32, 16}).together, 0u);
  const Tiling flat =
      choose_tiling({.rows = 5600, .outputs = 64, .can_pack = true, .terms = {960}}, {32, 16});
  EXPECT_EQ(flat.together, 512u);
  const Tiling large =
      choose_tiling({.rows = 56, .outputs = 40000, .outer_rows = 56, .terms = {960}}, {32, 16});
  EXPECT_EQ(large.together, 1u);
}

// A piece of a few thousand terms would cost less than a thread's way to it.
TEST(ContractionTile, GroupsOfUnknownRowsAreNotSingleRows) {
  const Tiling tiling = choose_tiling({.rows = 0, .outputs = 0, .outer_rows = 0, .terms = {4}}, {32, 16});
  EXPECT_TRUE(tiling.is_shared);
  EXPECT_GE(tiling.group * 64 * 64 * 4, uint64_t{1} << 16);
}

// Such a tile is written twice, which takes LLVM longer.
TEST(ContractionTile, TheFirstTilePacksWherePackingCounts) {
  const auto packs = [](uint64_t rows, uint64_t outer_rows) {
    const Tiling tiling = choose_tiling(
        {.rows = rows, .outputs = 64, .can_pack = true, .outer_rows = outer_rows, .terms = {960}}, {32, 16});
    EXPECT_TRUE(tiling.is_packed) << rows << " " << outer_rows;
    return tiling.packs_first_tile;
  };
  EXPECT_TRUE(packs(1024, 1));
  EXPECT_TRUE(packs(0, 1)) << "unknown";
  EXPECT_TRUE(packs(14, 14));
  EXPECT_FALSE(packs(1025, 1));
  EXPECT_FALSE(packs(56, 56));
}

TEST(ContractionTile, SharedGroupsAreSmall) {
  // Of 7 rows of 56, as much as a thread should take at the end; two tiles of rows where the first one packs.
  const Tiling plain = choose_tiling({.rows = 56, .outputs = 64, .outer_rows = 56, .terms = {24}}, {32, 16});
  EXPECT_TRUE(plain.is_shared);
  EXPECT_EQ(plain.group, 1u);
  const Tiling packed =
      choose_tiling({.rows = 49, .outputs = 64, .can_pack = true, .terms = {960}}, {32, 16});
  EXPECT_TRUE(packed.is_shared);
  EXPECT_TRUE(packed.packs_first_tile);
  EXPECT_EQ(packed.group, 14u);
  const Tiling transposed = choose_tiling({.rows = 64,
                                           .outputs = 64,
                                           .is_strided = true,
                                           .is_transposed = true,
                                           .can_pack = true,
                                           .terms = {768}},
                                          {32, 16});
  EXPECT_FALSE(transposed.is_shared);
  EXPECT_FALSE(transposed.packs_first_tile);
  EXPECT_FALSE(choose_tiling({.rows = 64, .outputs = 64, .terms = {16}}, {32, 16}).is_shared) << "too short";
}

}  // namespace
}  // namespace halyard::jit::contraction
