// Buffer: a byte range of an allocation. Allocation: one memory handle of a driver, with its owner count.
// Specified by hal-semantics.md ("Objects", "Queue-ordered operations") and hal-module.md, "Buffer".
// Thread-safe except for the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"

namespace halyard::hal {

class Allocation final : public ObjectOf<Allocation> {
 public:
  static const ObjectType kType;

  halyard_driver_memory_t memory = nullptr;  // owned
  uint32_t memory_type = 0;                  // as granted by the driver
  uint32_t usage = 0;
  uint32_t access = kAccessAll;
  uint64_t size = 0;  // as requested
  uint64_t origin_affinity = kAnyQueue;
  bool queue_ordered = false;  // from a queue alloca, so that a dealloca has an effect
  bool indeterminate_lifetime = false;
  bool is_constant = false;              // imported bytes that programs may not write to
  std::atomic<bool> deallocated{false};  // a dealloca has been submitted
  std::atomic<int64_t> owners{1};        // counted by preserve, discard and is_terminal
  Ref<Object> keep;                      // owner of imported bytes

  // Handles of other drivers for the same bytes (hal/device/sharing.h).
  struct Import {
    Ref<Device> device;
    halyard_driver_memory_t memory;  // owned
  };
  struct Shared {
    std::mutex mutex;  // guards the members below
    std::vector<Import> imports;
    void* pointer = nullptr;  // address of the bytes in this process
    bool mapped = false;      // by a persistent mapping
    bool expected = false;    // held work may import, even after a dealloca
    bool ended = false;       // no more imports, because of a dealloca
  } shared;
  std::atomic<uint64_t> mappings = 0;  // of Buffer::map() that are not reversed yet

  Device& device() const { return *device_; }

  // Reports the allocation, with the maker of the calling thread (MakerScope). Its release reports its end.
  void log_memory() {
    if (device_->memory_log()) [[unlikely]]
      begin_log();
  }
  // Precondition: the device has a log. An operation was given to its queue; the device has reported its end.
  void log_queued(bool is_dealloca, QueuedMemory operation);
  void log_done(bool is_dealloca, bool has_run);

  // Called before the driver allocates: charges `bytes` of memory and the objects for it. RESOURCE_EXHAUSTED.
  Result<> charge_to(Budget* budget, uint64_t bytes);
  // Reverses one Buffer::map().
  void unmap();

  Ref<Device> leave();

  explicit Allocation(Ref<Device> device) : device_(std::move(device)) {}

 private:
  void begin_log();

  Ref<Device> device_;
  Charge charge_;
  uint64_t logged_ = 0;  // number in the device's log; 0: not logged
};

class Buffer final : public ObjectOf<Buffer> {
 public:
  static const ObjectType kType;  // "hal.buffer"

  // Allocation on the host's timeline (hal.allocator.allocate). Type 0 means OPTIMAL, usage 0 means DEFAULT.
  // RESOURCE_EXHAUSTED, INVALID_ARGUMENT: from the driver. `memory` (may be null) is charged.
  static Result<Ref<Buffer>> allocate(Device& device, uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                      uint64_t size, Budget* memory = nullptr, uint64_t owner = 0);
  static Ref<Buffer> create(Ref<Allocation> allocation);  // the whole allocation

  uint64_t offset() const { return offset_; }  // bytes, within the allocation
  uint64_t length() const { return length_; }  // bytes
  uint32_t memory_type() const { return allocation_->memory_type; }
  uint32_t usage() const { return allocation_->usage; }
  uint32_t access() const { return allocation_->access; }
  Allocation& allocation() const { return *allocation_; }
  Device& device() const { return allocation_->device(); }
  Ref<Allocation> leave() { return std::move(allocation_); }

  // Returns this object for offset 0 and the full length, else a new object, charged to `memory` (may be
  // null). kWholeLength means the rest. OUT_OF_RANGE, RESOURCE_EXHAUSTED.
  Result<Ref<Buffer>> subspan(uint64_t offset, uint64_t length, Budget* memory = nullptr);
  // OUT_OF_RANGE unless the range lies within the buffer.
  Result<> check_range(uint64_t offset, uint64_t length) const;
  // PERMISSION_DENIED unless all bits are set; messages name both the expected and the actual bits.
  Result<> check_memory_type(uint32_t bits) const;
  Result<> check_usage(uint32_t bits) const;
  Result<> check_access(uint32_t bits) const;

  bool is_mappable() const {  // by the host
    return (memory_type() & HALYARD_MEMORY_HOST_VISIBLE) && (usage() & HALYARD_USAGE_MAPPING_SCOPED);
  }
  // Host access, not ordered with queued work. Checks range, access and mappability (HOST_VISIBLE,
  // MAPPING_SCOPED); flushes and invalidates memory that is not coherent.
  Result<> read(uint64_t offset, void* target, uint64_t length) const;
  Result<> write(uint64_t offset, const void* source, uint64_t length);
  // Maps the bytes into this process until Allocation::unmap(); the caller must keep the allocation until
  // then. Checks access and mappability, and that memory is coherent. The host may write if access() has
  // WRITE. A later dealloca does not free the bytes.
  Result<std::span<uint8_t>> map();

  Buffer(Ref<Allocation> allocation, uint64_t offset, uint64_t length)
      : allocation_(std::move(allocation)), offset_(offset), length_(length) {}

 private:
  Ref<Allocation> allocation_;
  uint64_t offset_;
  uint64_t length_;
  Charge charge_;
};

}  // namespace halyard::hal
