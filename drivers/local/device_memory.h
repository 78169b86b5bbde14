// Heap: the bytes of one device, counted. Memory: what a memory handle of the host's stands for, wherever its
// bytes come from: the heap, queue work (alloca), or the host itself (import).
//
// The bytes of an alloca are there from its turn on, and until the handle goes: a dealloca does not take
// them. Compiled programs are known that read a result after its dealloca (control_flow in the fixtures), and
// the host frees the handle as soon as nothing can name it any more, so early is not much earlier. Before its
// turn a use ends in FAILED_PRECONDITION.
//
// A device that validates finds the programs that get by because of that, or by luck: a use after the
// dealloca ends in FAILED_PRECONDITION, too; new bytes and bytes that were given back hold a pattern; and
// given back bytes stay unused for long, so that whoever still has their address finds the pattern there and
// no other program's data.
//
// Constants of a program are imported bytes that the host never writes to, but the program's kernels may
// (spec ruling 31). They write to the bytes themselves where those are private to the process, else to a copy
// that takes their place. A device that validates gives neither: such a write is found and refused.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>

#include "base/block_cache.h"
#include "status.h"

namespace halyard::local {

class Heap {
 public:
  static constexpr uint8_t kFreshPattern = 0xC5;                    // of new bytes, where it validates
  static constexpr uint8_t kFreedPattern = 0xDD;                    // of bytes given back
  static constexpr uint64_t kMostQuarantined = uint64_t{64} << 20;  // bytes given back and not used again

  // Bytes that are kept for reuse while they and what lives are more than ever lived at once.
  static constexpr uint64_t kMostIdle = uint64_t{16} << 20;

  Heap(uint64_t limit, bool validates) : limit_(limit), validates_(validates) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() { trim(); }

  bool validates() const { return validates_; }
  uint64_t limit() const { return limit_; }  // bytes that may live at a time
  // Aligned to BlockCache::kAlignment. RESOURCE_EXHAUSTED. `host_local` says which statistics it counts in.
  Result<uint8_t*> allocate(uint64_t size, bool host_local);
  void free(uint8_t* bytes, uint64_t size, bool host_local);
  void trim();
  halyard_memory_statistics_t statistics() const;

 private:
  // Bytes; what lives is the difference.
  struct Tally {
    std::atomic<uint64_t> allocated = 0, freed = 0, peak = 0;
    uint64_t live() const {
      // Freed first: what was freed has been allocated before.
      const uint64_t gone = freed.load(std::memory_order_acquire);
      return allocated.load(std::memory_order_relaxed) - gone;
    }
  };

  struct Block {
    uint8_t* bytes;
    uint64_t size;
  };
  bool charge(Tally& tally, uint64_t size);
  uint8_t* take(uint64_t size);
  uint8_t* take_new(uint64_t size);
  uint64_t live() const { return tallies_[0].live() + tallies_[1].live(); }
  void release_quarantined(uint64_t most);

  const uint64_t limit_;
  const bool validates_;
  BlockCache cache_;
  Tally tallies_[2];                // device, host
  std::atomic<uint64_t> peak_ = 0;  // of both together
  std::mutex mutex_;                // of what follows, which only a heap that validates uses
  std::deque<Block> quarantine_;    // oldest first
  uint64_t quarantined_ = 0;        // bytes
};

// INVALID_ARGUMENT: a type bit is demanded that has no meaning here, so that no memory has it.
Result<> check_type(const halyard_memory_request_t& request);

class Memory {
 public:
  // Of the heap, without bytes until commit(), which queue work does for memory that is `queue_ordered`.
  Memory(Heap& heap, const halyard_memory_request_t& request, bool queue_ordered);
  // Over the host's bytes. `access`: HALYARD_MAP_*.
  Memory(Heap& heap, uint8_t* bytes, uint32_t access, const halyard_memory_request_t& request);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  void describe(halyard_memory_info_t& info) const;
  uint64_t size() const { return size_; }  // bytes
  // FAILED_PRECONDITION before commit(), and after dealloca() where the heap validates. Any thread.
  Result<uint8_t*> bytes() const {
    uint8_t* const bytes = bytes_.load(std::memory_order_acquire);
    if (!bytes || deallocated_.load(std::memory_order_acquire)) [[unlikely]]
      return no_bytes(bytes);
    return bytes;
  }
  // As memory_export in driver.h.
  Result<halyard_external_memory_t> export_to(uint32_t kind) const;
  // Imported bytes that the host does not write to.
  bool is_constant() const { return (access_ & HALYARD_MAP_WRITE) == 0; }
  // Whether work may write to it: anything but constants of a device that validates.
  bool is_writable() const { return !is_constant() || !heap_.validates(); }
  // The bytes for work that may write to them, where that is allowed. Those of constants that cannot be
  // written are copied now, and the copy stands for them from now on. As bytes(), or RESOURCE_EXHAUSTED.
  Result<uint8_t*> bytes_to_write() { return is_constant() ? constant_to_write() : bytes(); }

  Result<> commit();
  // The turn of the dealloca. No effect on memory of another origin than commit() in queue order.
  Result<> dealloca();

 private:
  bool host_local() const;
  static Result<uint8_t*> no_bytes(const uint8_t* bytes);
  Result<uint8_t*> constant_to_write();
  Result<uint8_t*> copy_constant(uint8_t* original);

  Heap& heap_;
  uint8_t* const imported_ = nullptr;  // the host's
  const uint64_t size_;
  const uint32_t type_;
  const uint32_t usage_;
  const uint32_t access_ = HALYARD_MAP_READ | HALYARD_MAP_WRITE;  // of imported bytes
  const bool queue_ordered_ = false;
  std::atomic<bool> deallocated_ = false;  // only where the heap validates
  std::atomic<uint8_t*> bytes_ = nullptr;
};

// `offset` bytes from the start of `memory`, `length` of them. FAILED_PRECONDITION where alloca's bytes are
// not there.
Result<std::span<uint8_t>> bytes_at(const Memory& memory, uint64_t offset, uint64_t length);

}  // namespace halyard::local

struct halyard_driver_memory final : halyard::local::Memory {
  using Memory::Memory;
};
