// vm.buffer: a byte array of fixed length with access flags. Specified by verifier-and-execution.md, section
// 9, and isa.md 5.6. Threads may share the bytes; programs must order their accesses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/budget.h"
#include "base/node_pool.h"
#include "base/object.h"
#include "base/status.h"
#include "vm/object/spare_blocks.h"

namespace halyard::vm {

// The bytes of a new buffer: `any` if they are certainly written before they are read.
enum class BufferContents : uint8_t { zero, any };

class Buffer final : public ObjectOf<Buffer> {
 public:
  static const ObjectType kType;  // "vm.buffer"

  // Allocates a mutable buffer. `alignment` is 0 or a power of two (else INVALID_ARGUMENT); the
  // actual alignment is at least 16. RESOURCE_EXHAUSTED if `limit` bytes, the budget or memory is exceeded.
  // The budget (may be null) is also charged for the header and for padding. The memory may be a block of
  // `spare` (may be null), which gets it back from the destructor.
  static Result<Ref<Buffer>> allocate(uint64_t length, uint32_t alignment, uint64_t limit,
                                      Budget* budget = nullptr, SpareBlocks* spare = nullptr,
                                      BufferContents contents = BufferContents::zero);
  // Wraps existing bytes, which must outlive the buffer. The destructor calls `released` (may be empty).
  static Ref<Buffer> wrap(std::span<uint8_t> bytes, bool is_mutable, std::function<void()> released);
  // The same with memory from `nodes`, which `released` may free: for buffers that exist for one call. The
  // budget (may be null) is charged for the header. RESOURCE_EXHAUSTED: `released` is not called.
  static Result<Ref<Buffer>> wrap(std::span<uint8_t> bytes, bool is_mutable, NodePool& nodes, Budget* budget,
                                  std::function<void()> released);
  // Wraps a constant. `is_private` promises that nothing else uses the memory and that it can be made
  // writable: work on devices may then write to it. Otherwise nothing changes the bytes.
  static Ref<Buffer> wrap_const(std::span<const uint8_t> bytes, std::function<void()> released,
                                bool is_private = false);

  uint8_t* data() const { return data_; }
  uint64_t length() const { return length_; }  // bytes
  bool is_mutable() const { return mutable_; }
  uint64_t mutable_length() const { return mutable_length_; }  // writable bytes: all or none
  std::span<uint8_t> span() const { return {data_, length_}; }
  // Decides between two uses of constants that leave the program: some may be written by work on devices,
  // others (device code) must not change. The first use decides for the whole buffer. Returns false if the
  // buffer was first used in the other way; the caller must then copy the bytes. A buffer of wrap() that
  // programs cannot write to may still change, because it may be a view of device memory.
  bool may_be_written_by_devices() {
    return mutable_ || (private_ && decide(ConstantUse::written_by_devices));
  }
  bool never_changes() { return constant_ && decide(ConstantUse::never_changes); }
  // Points the buffer at other bytes, so that its owner can reuse it for many calls (kernel bindings).
  void rebind(std::span<uint8_t> bytes, bool is_mutable) {
    data_ = bytes.data();
    length_ = bytes.size();
    mutable_ = is_mutable;
    mutable_length_ = is_mutable ? length_ : 0;
  }

  // Byte offsets of members, for compiled code.
  struct Layout {
    uint32_t data;
    uint32_t length;
    uint32_t mutable_length;
    uint32_t written;  // 64 bits: the number of bytes from the first on that may have been written
  };
  static Layout layout();

  Buffer(std::span<uint8_t> bytes, bool is_mutable, std::function<void()> released)
      : data_(bytes.data()),
        length_(bytes.size()),
        mutable_length_(is_mutable ? bytes.size() : 0),
        mutable_(is_mutable),
        released_(std::move(released)) {}
  ~Buffer() { charge_.count(kType, -1); }  // through kType, which calls `released`

 private:
  static void destroy(Object* object);
  static Ref<Buffer> in_block(SpareBlocks::Block& block, uint64_t length, SpareBlocks& spare);
  SpareBlocks::Block leave_block();
  enum class ConstantUse : uint8_t { undecided, written_by_devices, never_changes };
  bool decide(ConstantUse use) {
    ConstantUse decided = ConstantUse::undecided;
    return constant_use_.compare_exchange_strong(decided, use) || decided == use;
  }

  uint8_t* data_;
  uint64_t length_;
  uint64_t mutable_length_;
  bool mutable_;
  bool constant_ = false;
  bool private_ = false;
  std::atomic<ConstantUse> constant_use_ = ConstantUse::undecided;
  std::function<void()> released_;
  // Compiled code sets a smaller number, if it knows the writes of the buffer.
  uint64_t written_ = UINT64_MAX;
  SpareBlocks* spare_ = nullptr;  // get the block, whose data has `block_bytes_`, with this object
  uint32_t block_bytes_ = 0;
  uint32_t written_before_ = 0;  // bytes from the first on that may not have been 0 when it was allocated
  NodePool* nodes_ = nullptr;    // owner of this object's memory; null: the heap
  Charge charge_;
};

}  // namespace halyard::vm
