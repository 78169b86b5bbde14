// Heap: the bytes of one device, counted. Memory: what a memory handle of the host's stands for, wherever its
// bytes come from: the heap, queue work (alloca), or the host itself (import).
//
// The bytes of an alloca are there from its turn on, and until the handle goes: a dealloca does not take
// them. Compiled programs are known that read a result after its dealloca (control_flow in the fixtures), and
// the host frees the handle as soon as nothing can name it any more, so early is not much earlier. Before its
// turn a use ends in FAILED_PRECONDITION.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "block_cache.h"
#include "status.h"

namespace halyard::local {

class Heap {
 public:
  explicit Heap(uint64_t limit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }  // bytes that may live at a time
  // Aligned to BlockCache::kAlignment. RESOURCE_EXHAUSTED. `host_local` says which statistics it counts in.
  Result<uint8_t*> allocate(uint64_t size, bool host_local);
  void free(uint8_t* bytes, uint64_t size, bool host_local);
  void trim();
  void statistics(halyard_memory_statistics_t& statistics) const;

 private:
  struct Tally {
    uint64_t live = 0, peak = 0, allocated = 0, freed = 0;
  };

  const uint64_t limit_;
  mutable std::mutex mutex_;
  BlockCache cache_;
  Tally tallies_[2];  // device, host
};

// INVALID_ARGUMENT: a type bit is demanded that has no meaning here, so that no memory has it.
Result<> check_type(const halyard_memory_request_t& request);

class Memory {
 public:
  // Of the heap, without bytes until commit().
  Memory(Heap& heap, const halyard_memory_request_t& request);
  // Over the host's bytes, which may not be `writable`.
  Memory(uint8_t* bytes, bool writable, const halyard_memory_request_t& request);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void describe(halyard_memory_info_t& info) const;
  // FAILED_PRECONDITION before commit(). Any thread.
  Result<uint8_t*> bytes() const;

  Result<> commit();
  bool writable() const { return writable_; }

 private:
  bool host_local() const;

  Heap* const heap_;  // null: the bytes are the host's
  const uint64_t size_;
  const uint32_t type_;
  const uint32_t usage_;
  const bool writable_ = true;
  std::atomic<uint8_t*> bytes_ = nullptr;
};

// `offset` bytes from the start of `memory`, `length` of them. FAILED_PRECONDITION where alloca's bytes are
// not there.
Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length);

}  // namespace halyard::local

struct halyard_driver_memory final : halyard::local::Memory {
  using Memory::Memory;
};
