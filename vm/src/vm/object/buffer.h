// vm.buffer: a byte array of fixed length with access flags. Specified by verifier-and-execution.md, section
// 9, and isa.md 5.6. The bytes may be shared between threads; the program orders its accesses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "base/budget.h"
#include "base/node_pool.h"
#include "base/object.h"
#include "base/status.h"

namespace halyard::vm {

class Buffer final : public ObjectOf<Buffer> {
 public:
  static const ObjectType kType;  // "vm.buffer"

  // Zero-filled and mutable. `alignment` is 0 or a power of two (INVALID_ARGUMENT); at least 16 is given.
  // RESOURCE_EXHAUSTED past `limit` bytes, the budget (may be null), which is charged for the header and for
  // what the alignment wastes, too, or memory.
  static Result<Ref<Buffer>> allocate(uint64_t length, uint32_t alignment, uint64_t limit,
                                      Budget* budget = nullptr);
  // Over somebody's bytes, which stay while the buffer does; `released` (may be empty) runs at its end.
  static Ref<Buffer> wrap(std::span<uint8_t> bytes, bool is_mutable, std::function<void()> released);
  // The same in memory of `nodes`, which `released` may let go: for what comes and goes with every call. The
  // budget (may be null) is charged for the header. RESOURCE_EXHAUSTED: `released` is not called.
  static Result<Ref<Buffer>> wrap(std::span<uint8_t> bytes, bool is_mutable, NodePool& nodes, Budget* budget,
                                  std::function<void()> released);
  // The same, and programs may not write to them. `is_private`: the memory could be, and nobody else has it.
  static Ref<Buffer> wrap_const(std::span<const uint8_t> bytes, std::function<void()> released,
                                bool is_private = false);

  uint8_t* data() const { return data_; }
  uint64_t length() const { return length_; }  // bytes
  bool is_mutable() const { return mutable_; }
  uint64_t mutable_length() const { return mutable_length_; }  // bytes that may be written: all or none
  std::span<uint8_t> span() const { return {data_, length_}; }
  // For constants that leave the program: a device's work may write to some, others are relied on not to
  // change (device code). The first use decides for the whole buffer; false: it was decided otherwise, and
  // whoever asks works on a copy.
  bool may_be_written_by_devices() {
    return mutable_ || (private_ && decide(ConstantUse::written_by_devices));
  }
  bool never_changes() { return !mutable_ && decide(ConstantUse::never_changes); }
  // Points the buffer at other bytes: for an owner that reuses one object for many calls (kernel bindings).
  void rebind(std::span<uint8_t> bytes, bool is_mutable) {
    data_ = bytes.data();
    length_ = bytes.size();
    mutable_ = is_mutable;
    mutable_length_ = is_mutable ? length_ : 0;
  }

  // For compiled code: where a buffer keeps these, in bytes from its address.
  struct Layout {
    uint32_t data;
    uint32_t length;
    uint32_t mutable_length;
  };
  static Layout layout();

  Buffer(std::span<uint8_t> bytes, bool is_mutable, std::function<void()> released)
      : data_(bytes.data()),
        length_(bytes.size()),
        mutable_length_(is_mutable ? bytes.size() : 0),
        mutable_(is_mutable),
        released_(std::move(released)) {}
  ~Buffer() { charge_.count(kType, -1); }  // by kType, which calls `released`

 private:
  static void destroy(Object* object);
  enum class ConstantUse : uint8_t { undecided, written_by_devices, never_changes };
  bool decide(ConstantUse use) {
    ConstantUse decided = ConstantUse::undecided;
    return constant_use_.compare_exchange_strong(decided, use) || decided == use;
  }

  uint8_t* data_;
  uint64_t length_;
  uint64_t mutable_length_;
  bool mutable_;
  bool private_ = false;
  std::atomic<ConstantUse> constant_use_ = ConstantUse::undecided;
  std::function<void()> released_;
  NodePool* nodes_ = nullptr;  // that its memory is of; null: the system's
  Charge charge_;
};

}  // namespace halyard::vm
