// Watchdog: stops invocations that take longer than their context allows. It has one thread, which starts
// with the first watch and ends with the watchdog; a context without a time limit never makes one.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "vm/waker.h"

namespace halyard::vm {

class Invocation;

class Watchdog {
 public:
  Watchdog() = default;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  // Interrupts the invocation with DEADLINE_EXCEEDED at that time, unless the watch has been ended. The
  // invocation ends it before it goes.
  uint64_t begin(Clock::time_point deadline, Invocation& invocation);
  void end(uint64_t watch);

 private:
  struct Watch {
    Clock::time_point deadline;
    Invocation* invocation;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Watch> watches_;
  std::multimap<Clock::time_point, uint64_t> by_time_;
  uint64_t last_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace halyard::vm
