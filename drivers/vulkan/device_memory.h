// Memory: what a memory handle of the host's stands for, wherever its bytes come from: the heap, queue work
// (alloca), or the host itself (import).
//
// The bytes of an alloca are there from its turn on, and until the handle goes: a dealloca does not take
// them. Compiled programs are known that read a result after its dealloca, and the host frees the handle as
// soon as nothing can name it any more. Before its turn a use ends in FAILED_PRECONDITION.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "heap.h"

namespace halyard::vulkan {

// Bytes of allocations, as the host asks for them.
class MemoryTally {
 public:
  void add(uint64_t bytes, bool host_local);
  void remove(uint64_t bytes, bool host_local);
  halyard_memory_statistics_t statistics() const;

 private:
  struct Side {
    uint64_t live = 0, peak = 0, allocated = 0, freed = 0;
  };
  mutable std::mutex mutex_;
  Side sides_[2];  // device, host
};

class Memory {
 public:
  // INVALID_ARGUMENT: no memory type has the bits. There are no bytes before commit().
  static Result<std::unique_ptr<halyard_driver_memory>> create(Heap& heap, MemoryTally& tally,
                                                               const halyard_memory_request_t& request);
  // Nothing says which kernels write, so they are not given bytes that must not be written, but a copy: those
  // do not change either. INVALID_ARGUMENT, RESOURCE_EXHAUSTED; UNIMPLEMENTED: the device cannot use these
  // bytes.
  static Result<std::unique_ptr<halyard_driver_memory>> import(Heap& heap, MemoryTally& tally,
                                                               const halyard_memory_request_t& request,
                                                               uint8_t* bytes, bool writable);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // RESOURCE_EXHAUSTED.
  Result<> commit();
  // FAILED_PRECONDITION before commit(). Any thread.
  Result<const Block*> block() const;
  // Where the host sees them. FAILED_PRECONDITION: before commit(), or it does not see them.
  Result<uint8_t*> bytes() const;
  void describe(halyard_memory_info_t& info) const;
  // What the host wrote is to be seen by the device, and the other way around. FAILED_PRECONDITION before
  // commit().
  Result<> flush(uint64_t offset, uint64_t length);
  Result<> invalidate(uint64_t offset, uint64_t length);
  // As memory_export in driver.h.
  Result<halyard_external_memory_t> export_to(uint32_t kind) const;
  uint64_t size() const { return size_; }
  bool coherent() const { return (type_ & HALYARD_MEMORY_HOST_COHERENT) != 0; }

  // For create() and import().
  Memory(Heap& heap, MemoryTally& tally) : heap_(heap), tally_(tally) {}

 private:
  bool host_local() const { return (type_ & HALYARD_MEMORY_HOST_LOCAL) == HALYARD_MEMORY_HOST_LOCAL; }

  Heap& heap_;
  MemoryTally& tally_;
  uint64_t size_ = 0;
  uint32_t type_ = 0;
  uint32_t usage_ = 0;
  unsigned kind_ = 0;
  uint8_t* imported_ = nullptr;  // the host's bytes
  bool counted_ = false;         // allocations are, imports are not
  std::atomic<Block*> block_ = nullptr;
};

}  // namespace halyard::vulkan

struct halyard_driver_memory final : halyard::vulkan::Memory {
  using Memory::Memory;
};
