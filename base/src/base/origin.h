// Origin: the process in which an object was created. fork() copies the objects of a process, but only the
// calling thread. In the child, the other threads never make progress and never release their locks. Objects
// with threads therefore keep an Origin, and do not wait, lock or join in a child process.
#pragma once

#include <atomic>
#include <cstdint>

namespace halyard {

// The number of fork() calls between the process that loaded the library and this one. A pthread_atfork
// handler counts them in the child, so that a query costs one load instead of a system call.
extern std::atomic<uint32_t> fork_count;

class Origin {
 public:
  // Whether the object was created before a fork(), and this process is the child.
  bool is_inherited() const { return made_ != fork_count.load(std::memory_order_relaxed); }

 private:
  uint32_t made_ = fork_count.load(std::memory_order_relaxed);
};

}  // namespace halyard
