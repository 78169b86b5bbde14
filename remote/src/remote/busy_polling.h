// BusyPolling: looks for bytes a short time before a thread sleeps, because waking a thread of an idle processor
// takes longer than a small call of a device on the same machine. A thread polls only while bytes do come
// within the bound, and stops at once if another thread wants its processor. One thread at a time.
#pragma once

#include <chrono>

namespace halyard::remote {

class BusyPolling {
 public:
  using Clock = std::chrono::steady_clock;

  // `bound`: the time of one poll; 0: never polls. With one processor it never polls either, because the other
  // side could not run meanwhile.
  explicit BusyPolling(std::chrono::microseconds bound);

  // Calls `is_there` until it returns true. False: nothing has come, so the thread should sleep.
  template <typename IsThere>
  bool poll(IsThere is_there) {
    begin_ = Clock::now();
    is_awaited_ = true;
    has_polled_ = likely_ > 0 && begin_ >= paused_until_;
    if (!has_polled_) return false;
    for (Clock::time_point last = begin_;;) {
      if (is_there()) return true;
      give_way();
      const Clock::time_point now = Clock::now();
      if (now - last > kInterrupted) return pause(now);
      if (now - begin_ >= bound_) return fail();
      last = now;
    }
  }
  // Bytes have come: during the last poll, or while the thread slept after it.
  void arrived() {
    if (is_awaited_) learn();
  }

 private:
  // Longer than system calls that find nothing: another thread has run.
  static constexpr std::chrono::microseconds kInterrupted{20};

  static void give_way();
  bool pause(Clock::time_point now);
  bool fail();
  void learn();

  const std::chrono::microseconds bound_;
  Clock::time_point begin_;         // of the last call of poll()
  Clock::time_point paused_until_;  // other threads need the processors
  int likely_ = 0;                  // above 0: bytes have come within the bound lately
  bool is_awaited_ = false;         // nothing has come since begin_
  bool has_polled_ = false;         // in the last call of poll()
};

}  // namespace halyard::remote
