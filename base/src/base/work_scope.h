// WorkScope: a stop word shared by a call and all queue work that it submits. The call and its work in flight
// hold a reference. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/loop.h"
#include "base/object.h"
#include "base/status.h"

namespace halyard {

class WorkScope final : public ObjectOf<WorkScope> {
 public:
  static const ObjectType kType;

  // Stops the work with this code, at its next check of the word. The first code is kept.
  void stop(Code code) {
    uint32_t none = 0;
    stop_.compare_exchange_strong(none, static_cast<uint32_t>(code), std::memory_order_relaxed);
  }
  // Stops the work with DEADLINE_EXCEEDED at that time, even after the call has returned. Throws like
  // Alarm::set.
  void stop_at(const Ref<Loop>& loop, Loop::Clock::time_point time) {
    if (!deadline_) deadline_.emplace(loop, [this] { stop(Code::DEADLINE_EXCEEDED); });
    deadline_->set(time);
  }
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed) != 0; }
  // The word is 0, or the code to stop with; see stop_code(). It lives as long as this object.
  const uint32_t* stop_word() const { return reinterpret_cast<const uint32_t*>(&stop_); }

 private:
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
                std::atomic<uint32_t>::is_always_lock_free);
  std::atomic<uint32_t> stop_ = 0;
  std::optional<Alarm> deadline_;
};

// Reads the code in a stop word (may be null): OK, or the code to stop with.
inline Code stop_code(const uint32_t* word) {
  return word ? static_cast<Code>(__atomic_load_n(word, __ATOMIC_RELAXED)) : Code::OK;
}
// The error of stopped work.
Status stopped_work(Code code);

}  // namespace halyard
