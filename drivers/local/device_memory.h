// Heap: the bytes of one device, counted. Memory: what a memory handle of the host's stands for, wherever its bytes come
// from: the heap, queue work (alloca), or the host itself (import).
//
// The bytes of an alloca exist between its turn and that of its dealloca. Programs are untrusted and may use them at any other
// time, from any thread. That ends in FAILED_PRECONDITION, never in a stray access: who uses bytes says so first (Use, map),
// then looks whether they are there; dealloca first takes them away, then looks whether anybody else is using any. If so
// they go back to the heap only with the handle, which the host frees after all work that names it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "block_cache.h"
#include "status.h"

namespace halyard::local {

// Whoever touches bytes, on any device of the instance: command lists and other queue operations.
using UseCount = std::atomic<uint32_t>;

class Use {
 public:
  explicit Use(UseCount& count) : count_(count) { count_.fetch_add(1, std::memory_order_seq_cst); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  ~Use() { count_.fetch_sub(1, std::memory_order_seq_cst); }

 private:
  UseCount& count_;
};

class Heap {
 public:
  explicit Heap(uint64_t limit) : limit_(limit) {}

  uint64_t limit() const { return limit_; }  // bytes that may live at a time
  Result<> check_size(uint64_t size) const;  // RESOURCE_EXHAUSTED where no allocation can be that large
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

class Memory {
 public:
  // Of the heap, without bytes until commit(). `transient`: made by alloca, so that dealloca ends it.
  Memory(Heap& heap, const halyard_memory_request_t& request, bool transient);
  // Over the host's bytes.
  Memory(uint8_t* bytes, const halyard_memory_request_t& request);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void describe(halyard_memory_info_t& info) const;
  // Null before commit and after decommit. Only in the scope of a Use.
  uint8_t* bytes() const { return bytes_.load(std::memory_order_seq_cst); }

  Result<> commit();
  // `uses` are the instance's, the caller's own Use among them. No effect on memory that is not transient.
  void decommit(const UseCount& uses);

  Result<uint8_t*> map();
  void unmap();

 private:
  bool host_local() const;

  Heap* const heap_;  // null: the bytes are the host's
  const uint64_t size_;
  const uint32_t type_;
  const uint32_t usage_;
  const bool transient_;
  uint8_t* block_ = nullptr;  // of the heap, to be given back
  std::atomic<uint8_t*> bytes_ = nullptr;
  std::atomic<uint32_t> maps_ = 0;
};

// `offset` bytes from the start of `memory`, `length` of them. FAILED_PRECONDITION where alloca's bytes are not there.
Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length);

}  // namespace halyard::local

struct halyard_driver_memory final : halyard::local::Memory {
  using Memory::Memory;
};
