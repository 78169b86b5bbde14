// CompileQueue: compiles functions on its own low-priority thread, which starts with the first function.
// Modules take turns, one function at a time; functions of one module are compiled in order. Calls never wait
// for the queue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "base/object.h"
#include "vm/compile/heat.h"

namespace halyard::vm {

// A module whose functions the queue compiles, by number.
class Compilable {
 public:
  virtual void compile(uint32_t function, bool for_loops) noexcept = 0;

 protected:
  ~Compilable() = default;
};

class CompileQueue {
 public:
  explicit CompileQueue(Sampling sampling = {});
  CompileQueue(const CompileQueue&) = delete;
  CompileQueue& operator=(const CompileQueue&) = delete;
  // Waits for the function being compiled, and drops the queued ones.
  ~CompileQueue();

  // The parameters for modules that are loaded with this queue.
  const Sampling& sampling() const { return sampling_; }

  // Queues a function, and keeps `owner`, which owns the functions, alive until it is compiled. If there is
  // no memory or thread it has no effect, and the function stays interpreted. Thread-safe.
  void add(Ref<Object> owner, Compilable& functions, uint32_t function, bool for_loops) noexcept;
  // The number of functions that are queued or being compiled. Thread-safe.
  size_t pending();
  // For tests: blocks until the queue is empty and idle.
  void wait_until_idle();

 private:
  struct Request {
    uint32_t function;
    bool for_loops;
  };
  struct Turn {  // the queued functions of a module
    Ref<Object> owner;
    Compilable* functions;
    std::deque<Request> requests;  // at least one
  };
  void work();

  const Sampling sampling_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Turn> turns_;
  size_t requests_ = 0;  // in all turns
  bool busy_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace halyard::vm
