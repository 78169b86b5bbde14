// CompileQueue: compiles functions in order on its own thread, which starts with the first function. Calls
// never wait for it, and its priority is low.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "base/object.h"
#include "vm/compile/heat.h"

namespace halyard::vm {

class BytecodeModule;

class CompileQueue {
 public:
  explicit CompileQueue(Sampling sampling = {});
  CompileQueue(const CompileQueue&) = delete;
  CompileQueue& operator=(const CompileQueue&) = delete;
  // Waits for the function being compiled and drops the queued ones.
  ~CompileQueue();

  // For the modules that are loaded with this queue.
  const Sampling& sampling() const { return sampling_; }

  // Keeps the module alive until it is compiled. Thread-safe. No effect without memory or a thread: the
  // function stays interpreted.
  void add(Ref<BytecodeModule> module, uint32_t function, bool for_loops) noexcept;
  // Functions that are being compiled or wait for it. Thread-safe.
  size_t pending();
  // For tests: blocks until the queue is empty and idle.
  void wait_until_idle();

 private:
  struct Job {
    Ref<BytecodeModule> module;
    uint32_t function;
    bool for_loops;
  };
  void work();

  const Sampling sampling_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool busy_ = false;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace halyard::vm
