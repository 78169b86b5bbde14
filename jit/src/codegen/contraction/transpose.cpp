// Elements change places within blocks of 128 bits, where x86 and arm64 shuffle with one instruction. Then
// the blocks change places.
#include "codegen/contraction/transpose.h"

namespace halyard::jit::contraction {

namespace {

constexpr uint64_t kBlockBytes = 16;

using Vectors = std::vector<llvm::Value*>;

// Of each block, interleaves units of `unit` elements of x and y: those of the lower half, or of the upper
// half.
llvm::Value* interleave(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y, size_t lanes, size_t block,
                        size_t unit, bool upper) {
  llvm::SmallVector<int, 16> mask;
  for (size_t begin = 0; begin < lanes; begin += block)
    for (size_t at = begin + (upper ? block / 2 : 0); mask.size() < begin + block; at += unit)
      for (const size_t from : {size_t{0}, lanes})
        for (size_t i = 0; i < unit; ++i) mask.push_back(static_cast<int>(from + at + i));
  return b.CreateShuffleVector(x, y, mask);
}

// Two vectors whose squares of `distance` blocks change places: the upper of the first with the lower of the
// second.
void exchange_blocks(llvm::IRBuilderBase& b, llvm::Value*& x, llvm::Value*& y, size_t lanes, size_t block,
                     size_t distance) {
  llvm::SmallVector<int, 16> first, second;
  for (size_t lane = 0; lane < lanes; ++lane) {
    const bool is_upper = lane / block & distance;
    const size_t moved = distance * block;
    first.push_back(static_cast<int>(is_upper ? lanes + lane - moved : lane));
    second.push_back(static_cast<int>(is_upper ? lanes + lane : lane + moved));
  }
  llvm::Value* const exchanged = b.CreateShuffleVector(x, y, first);
  y = b.CreateShuffleVector(x, y, second);
  x = exchanged;
}

}  // namespace

bool can_transpose(uint64_t lanes, uint64_t element_bytes) {
  return (element_bytes == 4 || element_bytes == 8) && lanes >= kBlockBytes / element_bytes;
}

Vectors transpose(llvm::IRBuilderBase& b, Vectors rows, uint64_t element_bytes) {
  const size_t lanes = rows.size();
  const size_t block = kBlockBytes / element_bytes;
  // Within blocks: log2(block) times, rows at a distance of 1, 2.
  for (size_t unit = 1; unit < block; unit *= 2) {
    Vectors next(lanes);
    for (size_t group = 0; group < lanes; group += 2 * unit)
      for (size_t i = 0; i < unit; ++i)
        for (const bool upper : {false, true})
          next[group + 2 * i + upper] =
              interleave(b, rows[group + i], rows[group + i + unit], lanes, block, unit, upper);
    rows = std::move(next);
  }
  for (size_t distance = lanes / block / 2; distance != 0; distance /= 2)
    for (size_t i = 0; i < lanes; ++i)
      if (!(i / block & distance))
        exchange_blocks(b, rows[i], rows[i + distance * block], lanes, block, distance);
  return rows;
}

}  // namespace halyard::jit::contraction
