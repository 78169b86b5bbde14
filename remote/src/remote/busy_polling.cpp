// Three polls in vain end the polling, and one short wait begins it again.
#include "remote/busy_polling.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace halyard::remote {

namespace {

constexpr int kMostLikely = 4;
constexpr std::chrono::milliseconds kPause{5};

}  // namespace

BusyPolling::BusyPolling(std::chrono::microseconds bound)
    : bound_(std::thread::hardware_concurrency() > 1 ? bound : std::chrono::microseconds(0)) {}

void BusyPolling::give_way() { ::sched_yield(); }

bool BusyPolling::pause(Clock::time_point now) {
  paused_until_ = now + kPause;
  return false;
}

bool BusyPolling::fail() {
  likely_ /= 2;
  return false;
}

// A thread that sleeps is woken later than the bytes come, so its wait counts as short a little beyond the
// bound.
void BusyPolling::learn() {
  is_awaited_ = false;
  const Clock::duration waited = Clock::now() - begin_;
  if (waited <= (has_polled_ ? bound_ : bound_ + bound_ / 2)) likely_ = std::min(likely_ + 1, kMostLikely);
}

}  // namespace halyard::remote
