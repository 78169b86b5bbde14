#include "vm/object/spare_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace halyard::vm {

namespace {

// Whole lines, so that buffers of nearly the same size use the same blocks.
uint64_t rounded(uint64_t bytes) {
  return std::max(bytes + SpareBlocks::kAlignment - 1, SpareBlocks::kAlignment) / SpareBlocks::kAlignment *
         SpareBlocks::kAlignment;
}

uint64_t size_of_block(uint64_t bytes) { return SpareBlocks::kHeader + SpareBlocks::kAlignment + bytes; }

// Lets AddressSanitizer report any use of a kept block, and of the bytes behind the data of a used one.
#if defined(__SANITIZE_ADDRESS__)
void forbid(const SpareBlocks::Block& block, uint64_t from = 0) {
  ASAN_POISON_MEMORY_REGION(block.memory.get() + from, size_of_block(block.bytes) - from);
}
void allow(const SpareBlocks::Block& block) {
  ASAN_UNPOISON_MEMORY_REGION(block.memory.get(), size_of_block(block.bytes));
}
#else
void forbid(const SpareBlocks::Block&, uint64_t = 0) {}
void allow(const SpareBlocks::Block&) {}
#endif

}  // namespace

// The one that was given last, among those that fit best: its bytes are likely to be in the cache.
bool SpareBlocks::take_kept(uint64_t bytes, Block& block) {
  Block* best = nullptr;
  for (size_t i = count_; i-- > 0;) {
    Block& kept = blocks_[i];
    if (kept.bytes < bytes || kept.bytes / 2 >= bytes) continue;
    if (!best || kept.bytes < best->bytes) best = &kept;
    if (kept.bytes == bytes) break;
  }
  if (!best) return false;
  block = std::move(*best);
  *best = std::move(blocks_[--count_]);
  kept_ -= block.bytes;
  allow(block);
  return true;
}

Result<> SpareBlocks::take(uint64_t length, Budget* budget, bool clears, Block& block) {
  if (!take_kept(rounded(length), block)) HALYARD_TRY(make_block(rounded(length), budget, block));
  if (clears && block.written) std::memset(block.data(), 0, std::exchange(block.written, 0));
  forbid(block, static_cast<uint64_t>(block.data() - block.memory.get()) + length);
  return {};
}

Result<> SpareBlocks::make_block(uint64_t bytes, Budget* budget, Block& block) {
  const uint64_t size = size_of_block(bytes);
  Result<> charged = block.charge.start(budget, block_bytes(size), "a buffer");
  if (!charged && trim()) charged = block.charge.start(budget, block_bytes(size), "a buffer");
  HALYARD_TRY(std::move(charged));
  // calloc returns untouched zero pages for large sizes.
  block.memory.reset(static_cast<uint8_t*>(std::calloc(1, size)));
  if (!block.memory) return fail(Code::RESOURCE_EXHAUSTED, "no memory for a buffer of {} bytes", bytes);
  block.bytes = bytes;
  return {};
}

void SpareBlocks::give(Block block) {
  if (count_ == kBlocks || block.bytes > kMaxKept - kept_) return allow(block);
  forbid(block);
  kept_ += block.bytes;
  blocks_[count_++] = std::move(block);
}

bool SpareBlocks::trim() {
  if (count_ == 0) return false;
  for (Block& block : blocks_) {
    if (block.memory) allow(block);
    block = {};
  }
  count_ = 0;
  kept_ = 0;
  return true;
}

}  // namespace halyard::vm
