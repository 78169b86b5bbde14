// How many rows a call of a batched model takes, and how long it waits for them.
//
// A call takes an even share of the rows that the clients keep in flight. A context that took all that wait
// would make their clients wait for one long call while the other contexts run short ones. And clients send
// their next requests shortly after a batch has been answered, but not at the same instant: a call that
// began with the first of them would have one row, and cost nearly as much as one with all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "metrics.h"

namespace halyard::tools::serve {

// Of one model. Guarded by the scheduler's mutex.
class BatchRule {
 public:
  // A request has come, or a call has begun or ended: `rows` wait and run.
  void set_in_flight(uint64_t rows) { most_ = std::max(most_, rows); }
  // A call has ended; then `rows` wait and run.
  void end_call(uint64_t rows, uint64_t contexts, Clock::time_point now) {
    last_end_ = now;
    if (++calls_ < kWindow * contexts) return;
    calls_ = 0;
    most_before_ = most_;
    most_ = rows;
  }

  // The rows for a call, if `contexts` contexts may run: at least one.
  uint64_t share(uint64_t contexts) const {
    const uint64_t rows = std::max({most_, most_before_, uint64_t{1}});
    return (rows + contexts - 1) / contexts;
  }
  // When a call begins even with fewer rows: soon after the first of them has come or the last call has
  // ended, compared with the time that a call takes. Quick calls do not wait, because a timer costs more.
  Clock::time_point due(Clock::time_point first_queued, Clock::duration call_time) const {
    const Clock::duration wait = call_time / kWaitPart;
    return std::max(first_queued, last_end_) + (wait < kShortestWait ? Clock::duration() : wait);
  }

 private:
  static constexpr uint64_t kWindow = 2;  // calls of each context, for which rows in flight are remembered
  static constexpr int kWaitPart = 8;
  static constexpr std::chrono::microseconds kShortestWait{50};

  uint64_t most_ = 0;         // rows in flight in this window
  uint64_t most_before_ = 0;  // and in the one before
  uint64_t calls_ = 0;        // ended in this window
  Clock::time_point last_end_ = Clock::time_point::min();
};

}  // namespace halyard::tools::serve
