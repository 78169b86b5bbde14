// Memory: the object behind a memory handle. Its bytes come from the heap, from queue work (alloca), or from
// the host (import).
//
// The bytes of an alloca exist from the time it runs until the handle is destroyed; using them earlier fails
// with FAILED_PRECONDITION. A dealloca does not free them, because some compiled programs read a result after
// its dealloca. The host destroys the handle as soon as nothing can refer to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "heap.h"

namespace halyard::vulkan {

// Statistics of allocations, which the host queries.
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
  // Memory without bytes until commit(). INVALID_ARGUMENT: no memory type has the bits.
  static Result<std::unique_ptr<halyard_driver_memory>> create(Heap& heap, MemoryTally& tally,
                                                               const halyard_memory_request_t& request);
  // Memory over the host's bytes. Read-only bytes are copied, because it is not known which kernels write.
  // The copy stays equal, because nothing else writes to the bytes. INVALID_ARGUMENT. RESOURCE_EXHAUSTED.
  // UNIMPLEMENTED: the device cannot use these bytes.
  static Result<std::unique_ptr<halyard_driver_memory>> import(Heap& heap, MemoryTally& tally,
                                                               const halyard_memory_request_t& request,
                                                               uint8_t* bytes, bool writable);
  // Memory that was exported as an opaque descriptor. Takes ownership of the descriptor on success. The
  // memory type is that of the request, which is the exporter's.
  static Result<std::unique_ptr<halyard_driver_memory>> import_fd(Heap& heap, MemoryTally& tally,
                                                                  const halyard_memory_request_t& request,
                                                                  const halyard_external_memory_t& external);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // RESOURCE_EXHAUSTED.
  Result<> commit();
  // FAILED_PRECONDITION before commit(). Thread-safe.
  Result<const Block*> block() const;
  // The address for the host. FAILED_PRECONDITION before commit(), or if the host cannot access the memory.
  Result<uint8_t*> bytes() const;
  void describe(halyard_memory_info_t& info) const;
  // Make the host's writes visible to the device (flush) and the device's writes visible to the host
  // (invalidate). FAILED_PRECONDITION before commit().
  Result<> flush(uint64_t offset, uint64_t length);
  Result<> invalidate(uint64_t offset, uint64_t length);
  // See memory_export in driver.h.
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
  uint64_t owner_ = 0;
  uint32_t type_ = 0;
  uint32_t usage_ = 0;
  unsigned kind_ = 0;
  uint8_t* imported_ = nullptr;  // owned by the host
  bool is_descriptor_ = false;   // imported from a file descriptor
  bool counted_ = false;         // true for allocations, false for imports
  std::atomic<Block*> block_ = nullptr;
};

}  // namespace halyard::vulkan

struct halyard_driver_memory final : halyard::vulkan::Memory {
  using Memory::Memory;
};
