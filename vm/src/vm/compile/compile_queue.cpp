// A queue and the thread that works on it.
#include "vm/compile/compile_queue.h"

#include <exception>

#include "vm/module/bytecode_module.h"

namespace halyard::vm {

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

void CompileQueue::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return jobs_.empty() && !busy_; });
}

void CompileQueue::work() {
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
