// The time limit of sending a response: the client must receive kMinRate bytes a second on average, after
// kGrace, and something in every kGrace (body.h).
#pragma once

#include <climits>
#include <cstdint>
#include <functional>
#include <utility>

#include "metrics.h"
#include "socket.h"

namespace halyard::tools::serve {

// One response. Used on the connection's strand.
class Sending {
 public:
  // Starts the time limit of `size` bytes. `expire_at` is called with each new deadline.
  Sending(ClientSocket& socket, uint64_t size, std::function<void(Clock::time_point)> expire_at);

  // The system has accepted `bytes` of them.
  void count(uint64_t bytes);
  // Called at a deadline: whether bytes that the client has received since the last count() or call extend
  // the deadline. The system accepts further bytes only when many of those that it has accepted are received.
  bool puts_off();

 private:
  int unreceived() const;

  ClientSocket& socket_;
  const uint64_t size_;
  const std::function<void(Clock::time_point)> expire_at_;
  const Clock::time_point begin_ = Clock::now();
  uint64_t accepted_ = 0;
  int unreceived_ = INT_MAX;  // bytes in the socket at the last count() or puts_off()
};

}  // namespace halyard::tools::serve
