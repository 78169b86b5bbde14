// Budget: memory that the objects of one context may take together, and, where somebody wants to know, how
// many they are. Charge: one object's part of it, given back at the object's end. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/live_objects.h"
#include "base/object.h"
#include "base/status.h"

namespace halyard {

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
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(uint64_t bytes) {
    if (source_.take) [[unlikely]]
      return source_.give_back(source_.user, bytes);
    used_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  LiveObjects* objects() const { return objects_.get(); }

 private:
  const uint64_t limit_;
  const std::shared_ptr<LiveObjects> objects_;
  const Source source_;
  std::atomic<uint64_t> used_ = 0;
};

// One thread at a time. Without a budget nothing is counted.
class Charge {
 public:
  Charge() = default;
  explicit Charge(Ref<Budget> budget) : budget_(std::move(budget)) {}
  Charge(Charge&& other) noexcept
      : budget_(std::move(other.budget_)),
        bytes_(std::exchange(other.bytes_, 0)),
        object_(std::exchange(other.object_, nullptr)) {}
  Charge& operator=(Charge&& other) noexcept {
    release();
    budget_ = std::move(other.budget_);
    bytes_ = std::exchange(other.bytes_, 0);
    object_ = std::exchange(other.object_, nullptr);
    return *this;
  }
  ~Charge() { release(); }

  // A charge of that size. RESOURCE_EXHAUSTED: that would pass the limit; `what` names what was wanted.
  static Result<Charge> take(Ref<Budget> budget, uint64_t bytes, const char* what);
  // At least that size from now on. RESOURCE_EXHAUSTED.
  Result<> grow_to(uint64_t bytes, const char* what);
  // It stands for an object of this type from now on. Once.
  void stand_for(const ObjectType& type) {
    if (!budget_ || !budget_->objects()) return;
    object_ = &type;
    budget_->objects()->add(type, 1);
  }
  void release() {
    if (!budget_) return;
    budget_->give_back(std::exchange(bytes_, 0));
    if (const ObjectType* type = std::exchange(object_, nullptr)) budget_->objects()->add(*type, -1);
  }

 private:
  Ref<Budget> budget_;
  uint64_t bytes_ = 0;
  const ObjectType* object_ = nullptr;  // where that is counted
};

}  // namespace halyard
