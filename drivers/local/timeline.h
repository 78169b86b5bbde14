// Semaphore: the kit's timeline. Subscriptions are allocated from the instance's node cache. In a process
// with one thread, no atomic instructions are used.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomics.h"
#include "halyard/driver/timeline.hpp"
#include "halyard/driver/waiting.hpp"
#include "node_cache.h"
#include "status.h"
#include "task.h"
#include "thread_pool.h"

namespace halyard::local {

struct Waiter : kit::WaiterLink<Waiter, TaskList> {};

struct FromCache {
  NodeCache* nodes;
  void* take(size_t size) const { return nodes->take(size); }
  void give(void* memory, size_t size) const noexcept { nodes->give(memory, size); }
};

class Semaphore : public kit::BasicTimeline<Semaphore, Waiter, Task, TaskList, FromCache> {
 public:
  Semaphore(const Services& services, NodeCache& nodes, uint64_t initial)
      : BasicTimeline(services, initial, FromCache{&nodes}) {}

 protected:
  friend BasicTimeline;
  static bool change(std::atomic<uint64_t>& value, uint64_t& expected, uint64_t to) {
    return compare_exchange(value, expected, to, std::memory_order_seq_cst);
  }
};

}  // namespace halyard::local

struct halyard_driver_semaphore final : halyard::local::Semaphore {
  using Semaphore::Semaphore;
};
