// Size classes and their lists. With AddressSanitizer, cached blocks are poisoned, so that any use of them is
// reported.
#include "base/block_cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/atomics.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace halyard {

BlockCache::SizeClass BlockCache::size_class(uint64_t size) {
  if (size <= kAlignment) return {0, kAlignment};
  const uint64_t below = std::bit_floor(size - 1);  // the next lower power of two
  const uint64_t step = std::max(below / 4, kAlignment);
  const uint64_t steps = (size - below + step - 1) / step;
  const auto doubling = static_cast<unsigned>(std::countr_zero(below) - std::countr_zero(kAlignment));
  return {doubling * 4 + static_cast<unsigned>(steps), below + steps * step};
}

// The inverse of size_class().
uint64_t BlockCache::class_bytes(unsigned index) {
  if (index == 0) return kAlignment;
  const unsigned doubling = (index - 1) / 4;
  const uint64_t below = kAlignment << doubling;
  return below + ((index - 1) % 4 + 1) * std::max(below / 4, kAlignment);
}

namespace {

// Lets the kernel deliver 2 MiB at a time. Without this, the first use of each 4 KiB interrupts the thread.
void ask_for_huge_pages([[maybe_unused]] uintptr_t begin, [[maybe_unused]] uint64_t bytes) {
#if defined(MADV_HUGEPAGE)
  constexpr uintptr_t kHuge = uintptr_t{2} << 20;
  const uintptr_t first = (begin + kHuge - 1) & ~(kHuge - 1), end = (begin + bytes) & ~(kHuge - 1);
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

// Uses calloc, because it does not touch memory that the kernel has zeroed. calloc cannot align, so the word
// before a block stores where its memory begins.
uint8_t* new_block(uint64_t bytes) {
  void* const begin = std::calloc(1, bytes + BlockCache::kAlignment);
  if (!begin) return nullptr;
  const auto at = reinterpret_cast<uintptr_t>(begin);  // a multiple of 16
  auto* const block = static_cast<uint8_t*>(begin) + (BlockCache::kAlignment - at % BlockCache::kAlignment);
  std::memcpy(block - sizeof begin, &begin, sizeof begin);
  ask_for_huge_pages(at, bytes);
  return block;
}

void free_block(void* block) {
  void* begin = nullptr;
  std::memcpy(&begin, static_cast<uint8_t*>(block) - sizeof begin, sizeof begin);
  std::free(begin);
}

}  // namespace

uint8_t* BlockCache::take_kept(uint64_t size, uint64_t owner) {
  const auto [index, bytes] = size_class(size);
  Kept* kept = kept_[index].take();
  if (!kept) return nullptr;
  fetch_sub(bytes > kSmall ? kept_bytes_ : kept_small_, bytes, std::memory_order_relaxed);
  ASAN_UNPOISON_MEMORY_REGION(kept, bytes);
  const bool may_stay = owner == kWritesAll || (owner != kNobody && owner == kept->owner);
  std::memset(static_cast<void*>(kept), 0, may_stay ? sizeof(Kept) : bytes);
  return reinterpret_cast<uint8_t*>(kept);
}

uint8_t* BlockCache::allocate(uint64_t size) {
  const uint64_t bytes = size_class(size).bytes;
  uint8_t* block = new_block(bytes);
  if (!block) {
    trim();
    block = new_block(bytes);
  }
  return block;
}

void BlockCache::give(uint8_t* block, uint64_t size, uint64_t owner) {
  const auto [index, bytes] = size_class(size);
  if (bytes <= kSmall) {
    fetch_add(kept_small_, bytes, std::memory_order_relaxed);
  } else if (fetch_add(kept_bytes_, bytes, std::memory_order_relaxed) + bytes > kMaxKept) {
    fetch_sub(kept_bytes_, bytes, std::memory_order_relaxed);
    free_block(block);
    return;
  }
  Kept* const kept = new (block) Kept{nullptr, owner};
  ASAN_POISON_MEMORY_REGION(block + sizeof(Kept), bytes - sizeof(Kept));
  kept_[index].give(kept);
}

void BlockCache::trim() {
  for (unsigned index = 0; index < kClasses; ++index) {
    const uint64_t bytes = class_bytes(index);
    Kept* kept = kept_[index].take_all();
    while (kept) {
      Kept* const next = kept->next;
      ASAN_UNPOISON_MEMORY_REGION(kept, sizeof(Kept));
      free_block(kept);
      fetch_sub(bytes > kSmall ? kept_bytes_ : kept_small_, bytes, std::memory_order_relaxed);
      kept = next;
    }
  }
}

}  // namespace halyard
