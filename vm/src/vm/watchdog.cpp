// A thread that sleeps until the nearest deadline.
#include "vm/watchdog.h"

#include "vm/invocation.h"

namespace halyard::vm {

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

uint64_t Watchdog::begin(Clock::time_point deadline, Invocation& invocation) {
  const std::lock_guard lock(mutex_);
  // First what may fail, in an order that leaves nothing behind: no thread or no memory is the caller's
  // failure.
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  const uint64_t watch = ++last_;
  const auto placed = by_time_.emplace(deadline, watch);
  try {
    watches_.emplace(watch, Watch{deadline, &invocation});
  } catch (...) {
    by_time_.erase(placed);
    throw;
  }
  if (placed == by_time_.begin()) {
    changed_.notify_one();
  }
  return watch;
}

void Watchdog::end(uint64_t watch) {
  const std::lock_guard lock(mutex_);
  const auto found = watches_.find(watch);
  if (found == watches_.end()) return;  // it was interrupted
  auto [first, last] = by_time_.equal_range(found->second.deadline);
  while (first != last && first->second != watch) ++first;
  if (first != last) by_time_.erase(first);
  watches_.erase(found);
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (by_time_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = by_time_.begin();
    if (Clock::now() < next->first) {
      changed_.wait_until(lock, Clock::time_point(next->first));
      continue;
    }
    const auto watch = watches_.find(next->second);
    // Under the lock, which the invocation takes before it goes.
    watch->second.invocation->interrupt(Code::DEADLINE_EXCEEDED);
    watches_.erase(watch);
    by_time_.erase(next);
  }
}

}  // namespace halyard::vm
