// BlockCache: blocks of memory that were given back, kept by size for whoever wants one next, so that a warm
// call which allocates and gives back the same sizes reaches neither malloc nor the kernel. Thread-safe, and
// without locks.
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
  static constexpr uint64_t kSmall = uint64_t{1} << 12;         // blocks up to this are kept however many
  static constexpr uint64_t kMostKept = uint64_t{256} << 20;    // bytes in all larger ones

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache() { trim(); }

  // At least `size` bytes (up to kLargestBlock), contents undefined; null where there is no memory.
  uint8_t* take(uint64_t size);
  // Takes back a block of take(size).
  void give(uint8_t* block, uint64_t size);
  // Gives everything kept to the system.
  void trim();

 private:
  struct Kept {
    Kept* next;
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
  std::atomic<uint64_t> kept_bytes_ = 0;
};

}  // namespace halyard
