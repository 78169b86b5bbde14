// Origin: which process an object was made in. fork() copies the objects of a process, but of its threads
// only the one that calls it: in the child, what needs another thread never happens, and a lock that one held
// is never released. Objects with threads keep an Origin, and do not wait, lock or join where they were
// inherited.
#pragma once

#include <atomic>
#include <cstdint>

namespace halyard {

// How many calls of fork() lie between this process and the one that loaded the library. Counted by a handler
// in the child (pthread_atfork), so that asking costs one load instead of a system call.
extern std::atomic<uint32_t> fork_count;

class Origin {
 public:
  // Whether the object was made before a fork(), and this is the child.
  bool is_inherited() const { return made_ != fork_count.load(std::memory_order_relaxed); }

 private:
  uint32_t made_ = fork_count.load(std::memory_order_relaxed);
};

}  // namespace halyard
