// BlockCache: keeps freed blocks of memory by size for reuse, so that a warm call that allocates and frees
// the same sizes reaches neither malloc nor the kernel. Thread-safe and lock-free.
//
// Nobody gets to see what somebody else has left in a block: each kept block knows who had it last, and is
// cleared when it goes to another. New blocks are zero.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/stash.h"

namespace halyard {

class BlockCache {
 public:
  static constexpr uint64_t kAlignment = 64;                    // of every block
  static constexpr uint64_t kLargestBlock = uint64_t{1} << 47;  // bytes
  static constexpr uint64_t kSmall = uint64_t{1} << 12;  // blocks up to this size do not count in kMostKept
  static constexpr uint64_t kMostKept = uint64_t{256} << 20;  // bytes in all larger ones

  // Owners are numbers; two of them have a meaning of their own.
  static constexpr uint64_t kNobody = 0;              // shares with nobody, not even with kNobody
  static constexpr uint64_t kWritesAll = UINT64_MAX;  // writes all bytes before anybody reads one

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache() { trim(); }

  // A cached block or a new one; null if there is no memory.
  uint8_t* take(uint64_t size, uint64_t owner) {
    uint8_t* block = take_kept(size, owner);
    return block ? block : allocate(size);
  }
  // A cached block of at least `size` bytes (up to kLargestBlock): zero, or what the same owner has left in
  // it; of kWritesAll undefined. Null if there is none.
  uint8_t* take_kept(uint64_t size, uint64_t owner);
  // A new block, which is zero; null if there is no memory.
  uint8_t* allocate(uint64_t size);
  // Takes back a block of take(size), which `owner` has used.
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
  // Four sizes to each doubling: at most a quarter of a block is slack.
  static constexpr unsigned kClasses = 4 * (47 - 6) + 1;
  struct SizeClass {
    unsigned index;
    uint64_t bytes;
  };
  static SizeClass size_class(uint64_t size);
  static uint64_t class_bytes(unsigned index);  // of the blocks

  std::array<Stash<Kept, &Kept::next>, kClasses> kept_;
  std::atomic<uint64_t> kept_small_ = 0;
  std::atomic<uint64_t> kept_bytes_ = 0;  // in larger ones
};

}  // namespace halyard
