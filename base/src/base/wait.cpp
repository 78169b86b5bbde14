// Waits. One lock guards both counting parts and reporting the end.
#include "base/wait.h"

namespace halyard {

const ObjectType Wait::kType = object_type<Wait>("wait");

uint64_t Wait::begin(uint32_t parts) {
  const std::lock_guard lock(mutex_);
  failure_ = {};
  missing_ = parts;
  armed_ = false;
  waiting_ = true;
  return ++number_;
}

bool Wait::arm() {
  const std::lock_guard lock(mutex_);
  armed_ = true;
  return waiting_;
}

bool Wait::abandon() {
  if (!waiting_) return false;
  const std::lock_guard lock(mutex_);
  return waiting_.exchange(false);
}

bool Wait::block(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return !waiting_; };
  if (deadline) return changed_.wait_until(lock, *deadline, has_ended);
  changed_.wait(lock, has_ended);
  return true;
}

// Does everything under the lock, because a blocked thread may free the wait as soon as it gets the lock.
bool Wait::arrive_at(uint64_t number, Status status, bool ends) noexcept {
  const std::lock_guard lock(mutex_);
  if (!waiting_ || (number != kAny && number != number_)) return false;
  if (status.ok() && !ends && --missing_ > 0) return false;
  failure_ = std::move(status);
  waiting_ = false;
  changed_.notify_all();
  if (armed_ && hook_.function) hook_.function(hook_.user);
  return true;
}

}  // namespace halyard
