// Memory: the object behind a memory handle. Its bytes come from the heap, from queue work (alloca), or from
// the host (import).
//
// The bytes of an alloca exist from its execution until the handle is destroyed; earlier use fails with
// FAILED_PRECONDITION. A dealloca does not free the bytes, because some compiled programs read a result after
// its dealloca (control_flow in the fixtures). This costs little memory, because the host destroys the handle
// as soon as nothing can refer to the memory.
//
// A validating device finds programs that read memory after its dealloca, before it is written, or after it
// is freed: use after the dealloca also fails with FAILED_PRECONDITION; new and freed bytes are filled with
// patterns; and freed bytes are quarantined, so that a stale address refers to the pattern instead of another
// program's data.
//
// Constants of a program are imported bytes. The host never writes to them, but kernels may (spec ruling 31):
// to the bytes themselves if these are private to the process, otherwise to a copy that replaces the bytes. A
// validating device refuses such writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "heap.h"
#include "status.h"

namespace halyard::local {

// INVALID_ARGUMENT: the request requires a type bit that no memory of this driver has.
Result<> check_type(const halyard_memory_request_t& request);

class Memory {
 public:
  // Memory of the heap. It has no bytes until commit(), which queue work calls for `queue_ordered` memory.
  Memory(Heap& heap, const halyard_memory_request_t& request, bool queue_ordered);
  // Memory over the host's bytes. `access`: HALYARD_MAP_*.
  Memory(Heap& heap, uint8_t* bytes, uint32_t access, const halyard_memory_request_t& request);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void describe(halyard_memory_info_t& info) const;
  uint64_t size() const { return size_; }  // bytes
  // FAILED_PRECONDITION before commit(), and after dealloca() on a validating heap. Thread-safe.
  Result<uint8_t*> bytes() const {
    uint8_t* const bytes = bytes_.load(std::memory_order_acquire);
    if (!bytes || deallocated_.load(std::memory_order_acquire)) [[unlikely]]
      return no_bytes(bytes);
    return bytes;
  }
  // See memory_export in driver.h.
  Result<halyard_external_memory_t> export_to(uint32_t kind) const;
  // True for imported bytes that the host does not write to.
  bool is_constant() const { return (access_ & HALYARD_MAP_WRITE) == 0; }
  // Whether work may write to the memory: false only for constants on a validating device.
  bool is_writable() const { return !is_constant() || !heap_.validates(); }
  // The bytes for work that may write to them; requires is_writable(). The first call copies constants in
  // read-only pages, and the copy replaces them. Fails like bytes(), or with RESOURCE_EXHAUSTED.
  Result<uint8_t*> bytes_to_write() { return is_constant() ? constant_to_write() : bytes(); }

  Result<> commit();
  // Called when the dealloca runs. Affects only queue-ordered memory.
  Result<> dealloca();

 private:
  bool host_local() const;
  static Result<uint8_t*> no_bytes(const uint8_t* bytes);
  Result<uint8_t*> constant_to_write();
  Result<uint8_t*> copy_constant(uint8_t* original);

  Heap& heap_;
  uint8_t* const imported_ = nullptr;  // owned by the host
  const uint64_t size_;
  const uint32_t type_;
  const uint32_t usage_;
  const uint32_t access_ = HALYARD_MAP_READ | HALYARD_MAP_WRITE;  // of imported bytes
  const bool queue_ordered_ = false;
  std::atomic<bool> deallocated_ = false;  // set only if the heap validates
  std::atomic<uint8_t*> bytes_ = nullptr;
  const uint64_t owner_ = BlockCache::kNobody;
};

// `length` bytes at `offset` from the start of `memory`. FAILED_PRECONDITION: its alloca has not run.
Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length);

}  // namespace halyard::local

struct halyard_driver_memory final : halyard::local::Memory {
  using Memory::Memory;
};
