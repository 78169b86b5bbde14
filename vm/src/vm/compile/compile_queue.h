// CompileQueue: compiles functions on its own low-priority threads, which start when there is work for them.
// Modules take turns, one function at a time; of one module, the function with the highest priority is next.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

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
  struct Request {
    uint32_t function;
    bool for_loops;         // with entries at the heads of loops
    uint64_t priority = 0;  // requests of equal priority are compiled in order
  };

  // `threads`: the maximum number of threads, at least 1.
  explicit CompileQueue(Sampling sampling = {}, uint32_t threads = 1);
  CompileQueue(const CompileQueue&) = delete;
  CompileQueue& operator=(const CompileQueue&) = delete;
  // Waits for the functions being compiled, and drops the queued ones. No other call may be running.
  ~CompileQueue();

  // The parameters for modules that are loaded with this queue.
  const Sampling& sampling() const { return sampling_; }

  // Queues a function, and keeps `owner`, which owns the functions, alive until it is compiled. If there is
  // no memory or thread it has no effect, and the function stays interpreted. Thread-safe.
  void add(Ref<Object> owner, Compilable& functions, const Request& request) noexcept;
  // Returns when the function's request for calls is done, or `stop` is set (base/work_scope.h; may be null).
  // Compiles it on this thread if it is still queued. While another thread compiles it, compiles queued
  // functions of the same module, then waits. Returns at once if there is no such request. Thread-safe.
  void finish(Compilable& functions, uint32_t function, const uint32_t* stop) noexcept;
  // The number of functions that are queued or being compiled. Thread-safe.
  size_t pending();
  // For tests: blocks until the queue is empty and idle.
  void wait_until_idle();

 private:
  struct Turn {  // the queued functions of a module
    Ref<Object> owner;
    Compilable* functions;
    std::deque<Request> requests;  // at least one, by priority
  };
  struct Task {  // a function being compiled
    Compilable* functions;
    Request request;
  };
  void work();
  void start_thread();
  // Removes a request from the front or the middle of a turn, and the turn if it was the last one.
  Request take(std::deque<Turn>::iterator turn, std::deque<Request>::iterator request);
  // Compiles the function without the lock.
  void run(std::unique_lock<std::mutex>& lock, Ref<Object> owner, const Task& task) noexcept;
  bool is_running(const Compilable& functions, uint32_t function) const;

  const Sampling sampling_;
  const uint32_t thread_limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Turn> turns_;
  size_t requests_ = 0;        // in all turns
  std::vector<Task> running_;  // on any thread
  size_t idle_threads_ = 0;
  bool done_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace halyard::vm
