#include "vm/object/spare_blocks.h"

#include <cstring>
#include <utility>

namespace halyard::vm {

SpareBlocks::Block SpareBlocks::take(uint64_t bytes) {
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (!block.memory || block.bytes < bytes || block.bytes / 2 >= bytes) continue;
    if (!best || block.bytes < best->bytes) best = &block;
  }
  if (!best) return {};
  kept_ -= best->bytes;
  if (best->written) std::memset(best->memory.get(), 0, best->written);
  best->written = 0;
  return std::move(*best);
}

void SpareBlocks::give(Block block) {
  if (block.bytes < kSmallest || block.bytes > kMaxKept - kept_) return;
  for (Block& place : blocks_) {
    if (place.memory) continue;
    kept_ += block.bytes;
    place = std::move(block);
    return;
  }
}

bool SpareBlocks::trim() {
  if (kept_ == 0) return false;
  blocks_ = {};
  kept_ = 0;
  return true;
}

}  // namespace halyard::vm
