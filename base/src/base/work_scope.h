// WorkScope: what a call and the queue work that it submits have in common, a word that stops all of it. The
// call and its work under way hold it. Any thread.
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

  // The work ends with this code at its next check of the word. The first code stays.
  void stop(Code code) {
    uint32_t none = 0;
    stop_.compare_exchange_strong(none, static_cast<uint32_t>(code), std::memory_order_relaxed);
  }
  // Stops it with DEADLINE_EXCEEDED at that time, also when the call has returned. Throws as Alarm does.
  void stop_at(const Ref<Loop>& loop, Loop::Clock::time_point time) {
    if (!deadline_) deadline_.emplace(loop, [this] { stop(Code::DEADLINE_EXCEEDED); });
    deadline_->set(time);
  }
  bool is_stopped() const { return stop_.load(std::memory_order_relaxed) != 0; }
  // 0, or the code to stop with; see stop_code(). Lives as long as this.
  const uint32_t* stop_word() const { return reinterpret_cast<const uint32_t*>(&stop_); }

 private:
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
                std::atomic<uint32_t>::is_always_lock_free);
  std::atomic<uint32_t> stop_ = 0;
  std::optional<Alarm> deadline_;
};

// What such a word, which may be null, says: OK, or the code to stop with.
inline Code stop_code(const uint32_t* word) {
  return word ? static_cast<Code>(__atomic_load_n(word, __ATOMIC_RELAXED)) : Code::OK;
}
// What work that was stopped fails with.
Status stopped_work(Code code);

}  // namespace halyard
