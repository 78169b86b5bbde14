// A queue and the thread that works on it.
#include "vm/compile/compile_queue.h"

#include <unistd.h>

#include <exception>

#include "vm/module/bytecode_module.h"

namespace halyard::vm {

namespace {

// Of the calling thread. Beside a thread of the usual priority on the same processor it then gets 3 % of the
// time where the process has one processor, and 25 % where it has more: the program may not need all of them,
// and a busy machine still gets something compiled.
void lower_priority() {
#ifdef __linux__
  const int niceness = std::thread::hardware_concurrency() == 1 ? 15 : 5;
  static_cast<void>(::nice(niceness));  // of a thread, on Linux
#endif
}

}  // namespace

CompileQueue::CompileQueue(Sampling sampling) : sampling_(sampling) {}

CompileQueue::~CompileQueue() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CompileQueue::add(Ref<BytecodeModule> module, uint32_t function, bool for_loops) noexcept try {
  const std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.push_back({std::move(module), function, for_loops});
  changed_.notify_all();
} catch (const std::exception&) {
}

size_t CompileQueue::pending() {
  const std::lock_guard lock(mutex_);
  return jobs_.size() + (busy_ ? 1 : 0);
}

void CompileQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void CompileQueue::work() {
  lower_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return done_ || !jobs_.empty(); });
    if (done_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    lock.unlock();
    job.module->compile(job.function, job.for_loops);
    job.module = {};
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace halyard::vm
