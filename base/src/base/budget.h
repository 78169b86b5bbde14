// Budget: memory that one context's program may take, and, where somebody wants to know, how many objects it
// has. Charge: one object's part of it, given back at the object's end. Any thread.
//
// Who makes an object for a program charges what the process grows by: its own block of memory, the blocks
// that it holds, the bytes that alignment wastes. An object keeps its budget alive, so it may outlive the
// context.
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

// Of bytes; sums of what programs ask for may pass 64 bits.
constexpr uint64_t saturating_add(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

// What a block of so many bytes takes of the process, with what the C library adds: a header, multiples of
// 16, pages of its own for a large one.
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
  // `objects` (may be null) counts those that charges stand for.
  explicit Budget(uint64_t limit, std::shared_ptr<LiveObjects> objects = {})
      : limit_(limit), objects_(std::move(objects)) {}

  // A budget that stands for somebody else's, who outlives it.
  struct Source {
    void* user = nullptr;
    int32_t (*take)(void* user, uint64_t bytes) = nullptr;  // not 0: taken
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

// One thread at a time. Without a budget nothing is counted. Where a call fails, with RESOURCE_EXHAUSTED, the
// charge stays as it was; `what` names what was wanted.
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
  // Gives a charge that has none a budget, where there is one.
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
  // So many objects more of this type, where somebody counts them.
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

// Room for `count` elements in the vector, with its blocks charged: the old and the new one while elements
// move, then the new one. It doubles, or, where that is too much for the budget, grows by less, but by an
// eighth at least: in smaller steps the elements would be moved again and again. Throws std::bad_alloc, with
// the charge as it was.
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
