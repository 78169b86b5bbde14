// BusyPolling: looks for bytes a short time before a thread sleeps, because waking a thread of an idle
// processor takes longer than a small call of a device on the same machine. A thread polls only while bytes
// do come within the bound, and stops at once if another thread wants its processor. One thread at a time.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace halyard::remote {

struct ProcessorTime {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point now() { return Clock::now(); }
  static void give_way() { ::sched_yield(); }
  static unsigned processors() { return std::thread::hardware_concurrency(); }  // of this process
};

// `Time` as above; tests have one that they set.
template <typename Time>
class BasicBusyPolling {
 public:
  // `bound`: the time of one poll; 0: never polls. With one processor it never polls either, because the
  // other side could not run meanwhile.
  explicit BasicBusyPolling(std::chrono::microseconds bound)
      : bound_(Time::processors() > 1 ? bound : std::chrono::microseconds(0)) {}

  // Calls `is_there` until it returns true. False: nothing has come, so the thread should sleep.
  template <typename IsThere>
  bool poll(IsThere is_there) {
    begin_ = Time::now();
    is_awaited_ = true;
    has_polled_ = likely_ > 0 && bound_.count() > 0 && begin_ >= paused_until_;
    if (!has_polled_) return false;
    for (auto last = begin_;;) {
      if (is_there()) return true;
      Time::give_way();
      const auto now = Time::now();
      if (now - last > kInterrupted) {
        paused_until_ = now + kPause;
        return false;
      }
      if (now - begin_ >= bound_) {
        likely_ /= 2;
        return false;
      }
      last = now;
    }
  }
  // Bytes have come: during the last poll, or while the thread slept after it. A thread that sleeps is woken
  // later than the bytes come, so its wait counts as short a little beyond the bound.
  void arrived() {
    if (!is_awaited_) return;
    is_awaited_ = false;
    if (Time::now() - begin_ <= (has_polled_ ? bound_ : bound_ + bound_ / 2))
      likely_ = std::min(likely_ + 1, kMostLikely);
  }

 private:
  using Instant = decltype(Time::now());
  // Longer than system calls that find nothing: another thread has run.
  static constexpr std::chrono::microseconds kInterrupted{20};
  static constexpr std::chrono::milliseconds kPause{5};
  static constexpr int kMostLikely = 4;  // three polls in vain end the polling

  const std::chrono::microseconds bound_;
  Instant begin_ = {};         // of the last call of poll()
  Instant paused_until_ = {};  // other threads need the processors
  int likely_ = 0;             // above 0: bytes have come within the bound lately
  bool is_awaited_ = false;    // nothing has come since begin_
  bool has_polled_ = false;    // in the last call of poll()
};

using BusyPolling = BasicBusyPolling<ProcessorTime>;

}  // namespace halyard::remote
