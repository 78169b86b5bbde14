// Heap: the memory of one device, with a limit and statistics. A validating heap fills new and freed bytes
// with patterns and reuses freed bytes late.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "base/block_cache.h"
#include "status.h"

namespace halyard::local {

class Heap {
 public:
  static constexpr uint8_t kFreshPattern = 0xC5;                   // fills new bytes of a validating heap
  static constexpr uint8_t kFreedPattern = 0xDD;                   // fills freed bytes
  static constexpr uint64_t kMaxQuarantined = uint64_t{64} << 20;  // bytes in quarantine

  // The heap keeps freed blocks for reuse as long as the sum of these blocks and the live bytes exceeds the
  // peak by no more than this.
  static constexpr uint64_t kMaxIdle = uint64_t{16} << 20;

  // `limit` is at most BlockCache::kMaxBlock.
  Heap(uint64_t limit, bool validates) : limit_(limit), validates_(validates) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() { trim(); }

  bool validates() const { return validates_; }
  uint64_t limit() const { return limit_; }  // maximum of live bytes
  // The bytes are aligned to BlockCache::kAlignment, and are zero or were last written by the same owner
  // (base/block_cache.h). `host_local` selects the statistics that count them. RESOURCE_EXHAUSTED.
  Result<uint8_t*> allocate(uint64_t size, bool host_local, uint64_t owner);
  void free(uint8_t* bytes, uint64_t size, bool host_local, uint64_t owner);
  void trim();
  halyard_memory_statistics_t statistics() const;

 private:
  // In bytes. Live bytes are `allocated` minus `freed`.
  struct Tally {
    std::atomic<uint64_t> allocated = 0, freed = 0, peak = 0;
    uint64_t live() const {
      // Reads `freed` first, so that the difference cannot be negative.
      const uint64_t gone = freed.load(std::memory_order_acquire);
      return allocated.load(std::memory_order_relaxed) - gone;
    }
  };

  struct Block {
    uint8_t* bytes;
    uint64_t size;
    uint64_t owner;
  };
  bool charge(Tally& tally, uint64_t size);
  uint8_t* take(uint64_t size, uint64_t owner);
  uint8_t* take_new(uint64_t size);
  uint64_t live() const { return tallies_[0].live() + tallies_[1].live(); }
  void release_quarantined(uint64_t most);

  const uint64_t limit_;
  const bool validates_;
  BlockCache cache_;
  Tally tallies_[2];                // device, host
  std::atomic<uint64_t> peak_ = 0;  // of both tallies together
  std::mutex mutex_;                // guards the fields below, which only a validating heap uses
  std::deque<Block> quarantine_;    // oldest first
  uint64_t quarantined_ = 0;        // bytes
};

}  // namespace halyard::local
