// Budget: the memory limit of one context's program, with optional counts of its objects. Charge: one
// object's share of the budget, given back when the object is destroyed. Thread-safe.
//
// The creator of an object for a program charges the growth of the process: the object's own block, the
// blocks that it holds, and alignment padding. An object keeps its budget alive, so the budget may outlive
// the context.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/atomics.h"
#include "base/live_objects.h"
#include "base/object.h"
#include "base/status.h"

namespace halyard {

// Sums of byte counts. Sums of requested sizes may overflow 64 bits.
constexpr uint64_t saturating_add(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

// The memory that a block of that size takes, including the C library's overhead: a header, rounding to 16
// bytes, whole pages for a large block.
constexpr uint64_t block_bytes(uint64_t size) {
  constexpr uint64_t kLarge = 128 << 10;
  constexpr uint64_t kPage = 4096;
  if (size == 0) return 0;
  if (size > UINT64_MAX - 2 * kPage) return UINT64_MAX;
  if (size >= kLarge) return (size + 16 + kPage - 1) / kPage * kPage;
  return std::max<uint64_t>((size + 8 + 15) / 16 * 16, 32);
}

class Budget final : public ObjectOf<Budget> {
 public:
  static const ObjectType kType;

  static constexpr uint64_t kNoLimit = UINT64_MAX;
  // `objects` (may be null) counts the charged objects.
  explicit Budget(uint64_t limit, std::shared_ptr<LiveObjects> objects = {})
      : limit_(limit), objects_(std::move(objects)) {}

  // A proxy for a budget of another library. That budget outlives the proxy.
  struct Source {
    void* user = nullptr;
    int32_t (*take)(void* user, uint64_t bytes) = nullptr;  // returns 0 if refused
    void (*give_back)(void* user, uint64_t bytes) = nullptr;
    uint64_t (*used)(void* user) = nullptr;
  };
  Budget(uint64_t limit, const Source& source) : limit_(limit), source_(source) {}

  uint64_t limit() const { return limit_; }  // bytes
  uint64_t used() const {
    return source_.used ? source_.used(source_.user) : used_.load(std::memory_order_relaxed);
  }
  bool take(uint64_t bytes) {
    if (source_.take) [[unlikely]]
      return source_.take(source_.user, bytes) != 0;
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - used) return false;
    } while (!compare_exchange(used_, used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(uint64_t bytes) {
    if (source_.take) [[unlikely]]
      return source_.give_back(source_.user, bytes);
    fetch_sub(used_, bytes, std::memory_order_relaxed);
  }
  LiveObjects* objects() const { return objects_.get(); }

 private:
  const uint64_t limit_;
  const std::shared_ptr<LiveObjects> objects_;
  const Source source_;
  std::atomic<uint64_t> used_ = 0;
};

// One thread at a time. Without a budget nothing is charged. A call that fails with RESOURCE_EXHAUSTED leaves
// the charge unchanged; `what` names the object in the message.
class Charge {
 public:
  Charge() = default;
  explicit Charge(Ref<Budget> budget) : budget_(std::move(budget)) {}
  Charge(Charge&& other) noexcept
      : budget_(std::move(other.budget_)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    release();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ~Charge() { release(); }

  static Result<Charge> take(Ref<Budget> budget, uint64_t bytes, const char* what);
  // Sets the budget of a charge that has none; no effect for null.
  Result<> start(Budget* budget, uint64_t bytes, const char* what) {
    if (!budget) [[likely]]
      return {};
    return begin(*budget, bytes, what);
  }
  bool has_budget() const { return static_cast<bool>(budget_); }
  uint64_t bytes() const { return bytes_; }  // 0 without a budget
  Result<> grow_to(uint64_t bytes, const char* what) {
    if (!budget_ || bytes <= bytes_) return {};
    return grow(bytes - bytes_, what);
  }
  Result<> grow_by(uint64_t bytes, const char* what) {
    if (!budget_) [[likely]]
      return {};
    return grow(bytes, what);
  }
  void shrink_to(uint64_t bytes) {
    if (bytes >= bytes_) return;
    budget_->give_back(bytes_ - bytes);
    bytes_ = bytes;
  }
  // Adds to the object count of this type, if objects are counted.
  void count(const ObjectType& type, int64_t objects) const {
    if (budget_ && budget_->objects()) budget_->objects()->add(type, objects);
  }

 private:
  Result<> begin(Budget& budget, uint64_t bytes, const char* what);
  Result<> grow(uint64_t bytes, const char* what);
  void release() {
    if (budget_) budget_->give_back(std::exchange(bytes_, 0));
  }

  Ref<Budget> budget_;
  uint64_t bytes_ = 0;
};

// Reserves room for `count` elements in the vector and charges the memory of its blocks: of the old and the
// new block while elements move, then of the new block only. The capacity doubles. If the budget does not
// allow that, it grows by at least an eighth, because smaller steps would move the elements too often. Throws
// std::bad_alloc and then leaves the charge unchanged.
template <typename T>
Result<> reserve_charged(std::vector<T>& vector, size_t count, Charge& charge, const char* what) {
  if (count <= vector.capacity()) return {};
  if (!charge.has_budget()) [[likely]] {
    vector.reserve(std::max(count, 2 * vector.capacity()));
    return {};
  }
  const uint64_t before = charge.bytes();
  const uint64_t old_block = block_bytes(vector.capacity() * sizeof(T));
  size_t capacity = 0;
  Result<> charged;
  for (size_t part = 1; part <= 8; part *= 2) {
    capacity = std::max(count, vector.capacity() + (vector.capacity() + part - 1) / part);
    charged = charge.grow_by(block_bytes(capacity * sizeof(T)), what);
    if (charged || capacity == count) break;
  }
  HALYARD_TRY(std::move(charged));
  try {
    vector.reserve(capacity);
  } catch (const std::bad_alloc&) {
    charge.shrink_to(before);
    throw;
  }
  charge.shrink_to(charge.bytes() - old_block);
  return {};
}

}  // namespace halyard
