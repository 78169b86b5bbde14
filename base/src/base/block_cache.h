// BlockCache: keeps freed memory blocks by size for reuse, so that a warm call that allocates and frees the
// same sizes reaches neither malloc nor the kernel. Thread-safe and lock-free.
//
// No owner can read the data that another owner left in a block: each cached block records its last owner,
// and is cleared before another owner gets it. New blocks are zero.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/free_list.h"

namespace halyard {

class BlockCache {
 public:
  static constexpr uint64_t kAlignment = 64;                // of every block, in bytes
  static constexpr uint64_t kMaxBlock = uint64_t{1} << 47;  // bytes
  static constexpr uint64_t kSmall = uint64_t{1} << 12;     // blocks up to this size do not count in kMaxKept
  static constexpr uint64_t kMaxKept = uint64_t{256} << 20;  // bytes in all cached larger blocks

  // Special owners.
  static constexpr uint64_t kNobody = 0;              // shares with nobody, not even with another kNobody
  static constexpr uint64_t kWritesAll = UINT64_MAX;  // writes all bytes before it reads any

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache() { trim(); }

  // Returns a cached block or a new one; null if out of memory.
  uint8_t* take(uint64_t size, uint64_t owner) {
    uint8_t* block = take_kept(size, owner);
    return block ? block : allocate(size);
  }
  // Returns a cached block of at least `size` bytes (up to kMaxBlock); null if there is none. Its
  // contents are zero, or bytes that the same owner left in it; undefined for kWritesAll.
  uint8_t* take_kept(uint64_t size, uint64_t owner);
  // Returns a new, zero-filled block; null if out of memory.
  uint8_t* allocate(uint64_t size);
  // Takes back a block of take(size) that `owner` has used.
  void give(uint8_t* block, uint64_t size, uint64_t owner);
  uint64_t kept_bytes() const {
    return kept_small_.load(std::memory_order_relaxed) + kept_bytes_.load(std::memory_order_relaxed);
  }
  // Frees all cached blocks.
  void trim();

 private:
  struct Kept {
    Kept* next;
    uint64_t owner;
  };
  // Four size classes for each power of two: at most a quarter of a block is unused.
  static constexpr unsigned kClasses = 4 * (47 - 6) + 1;
  struct SizeClass {
    unsigned index;
    uint64_t bytes;
  };
  static SizeClass size_class(uint64_t size);
  static uint64_t class_bytes(unsigned index);  // size of its blocks

  std::array<FreeList<Kept, &Kept::next>, kClasses> kept_;
  std::atomic<uint64_t> kept_small_ = 0;
  std::atomic<uint64_t> kept_bytes_ = 0;  // in larger blocks
};

}  // namespace halyard
