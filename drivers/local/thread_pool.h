// ThreadPool: the threads of one device and their task queue. A thread is started if there is work and no
// idle thread, up to a limit; the destructor joins all threads.
//
// This is not Asio's thread pool, although Asio is the project's event loop: the device waits for no timer
// and no file descriptor, its queue links tasks that their owners have already allocated (Asio would allocate
// for each post), and the driver would depend on one more package. What remains is a queue, a lock and a
// condition variable.
//
// TaskList: the tasks that became ready together. A list posts to pools, and the threads of a pool run a list
// after each task, so the two lie in one file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "estimate.h"
#include "status.h"
#include "task.h"

namespace halyard::local {

class ThreadPool {
 public:
  explicit ThreadPool(unsigned limit) : limit_(limit) {}
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  // Joins the threads. The queue must be empty. Must not be called on one of the threads.
  ~ThreadPool();

  // Must be called once, before post(). RESOURCE_EXHAUSTED: the system cannot start a thread.
  Result<> start();
  // Runs `task` on one of the threads. Thread-safe. The pool may be destroyed as soon as the task may have
  // run.
  void post(Task& task);
  // Removes a task from the queue. Returns false if it has been or is being run.
  bool take_back(Task& task);
  // If a task is still queued, wakes one more thread: the one woken for it may have no processor yet.
  void wake_another() {
    if (has_queued()) wake_.notify_one();
  }
  // Runs queued tasks that are expected to be short on the calling thread, which is about to wait, until
  // `over()`. The thread takes the place of an idle worker and returns after kBrief at the latest; if the
  // pool is idle it returns at once.
  template <typename Over>
  void run_pending(Over&& over) {
    if (!is_active()) return;
    const Stopwatch whole(true);
    Stopwatch idle(true);
    const auto is_late = [&] { return is_idle_too_long(idle) || whole.elapsed() >= kBrief; };
    std::unique_lock lock(mutex_);
    while (!over() && is_active() && !is_late()) {
      if (has_brief()) {
        run_first(lock, true);
        idle = Stopwatch(true);
      } else {
        spin(lock, spinning_helpers_, [&] { return over() || is_late(); });
      }
    }
    if (!queue_.empty()) wake_one();  // no worker was woken for tasks that this thread would have run
  }

  // While it exists, and if `expects_help`, idle threads spin longer before they sleep. Not if there are more
  // threads than processors: spinning would slow down the working threads.
  class KeepAwake {
   public:
    KeepAwake(ThreadPool& thread_pool, bool expects_help)
        : thread_pool_(expects_help ? &thread_pool : nullptr) {
      if (thread_pool_) thread_pool_->shared_.fetch_add(1, std::memory_order_relaxed);
    }
    KeepAwake(const KeepAwake&) = delete;
    KeepAwake& operator=(const KeepAwake&) = delete;
    ~KeepAwake() {
      if (thread_pool_) thread_pool_->shared_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    ThreadPool* const thread_pool_;
  };

  unsigned limit() const { return limit_; }  // of threads
  // The number of threads without work, including those not started yet.
  unsigned idle_threads();
  // Brackets a call of the host on a pool thread. The call may take long and may even wait for queued work
  // [R88], so the thread does not count meanwhile and another one may be started in its place.
  void begin_host_call();
  void end_host_call();
  bool has_queued() const { return queued_.load(std::memory_order_relaxed) != 0; }

 private:
  std::error_code start_thread();
  void wake_one();
  void work();
  void run_first(std::unique_lock<std::mutex>& lock, bool is_helper);
  bool has_brief() const { return has_queued() && queue_.first()->is_brief; }
  // Spins until the queue or the number of busy threads changes, or `stop()`. Work may arrive sooner than a
  // sleeping thread could be woken, and no thread is woken for work that a spinning thread will find:
  // `spinning` counts it. Does not yield, since a thread that counts as spinning must be running.
  template <typename Stop>
  void spin(std::unique_lock<std::mutex>& lock, unsigned& spinning, Stop&& stop) {
    ++spinning;
    lock.unlock();
    const unsigned queued = queued_;
    const unsigned busy = busy_;
    while (queued_ == queued && busy_ == busy && !stop()) continue;
    lock.lock();
    --spinning;
  }
  // Whether a thread that has been idle since `idle` started should sleep.
  bool is_idle_too_long(const Stopwatch& idle) const {
    const bool stays = has_processors_ && shared_.load(std::memory_order_relaxed) != 0;
    return idle.elapsed() >= (stays ? kStaysAwake : kWorthWaking);
  }
  bool is_active() const {
    const unsigned busy = busy_.load(std::memory_order_relaxed);
    return busy < limit_ && (busy != 0 || has_queued());
  }

  const unsigned limit_;
  const bool has_processors_ = limit_ <= std::thread::hardware_concurrency();
  std::atomic<unsigned> shared_ = 0;  // pieces of shared work in progress
  std::mutex mutex_;                  // guards the fields below; `queued_` and `busy_` may be read without it
  std::condition_variable wake_;
  TaskQueue queue_;
  std::atomic<unsigned> queued_ = 0;
  std::atomic<unsigned> busy_ = 0;  // threads that run a task
  unsigned waiting_ = 0;            // threads that sleep
  unsigned woken_ = 0;              // of those, threads that have been notified and not yet run
  unsigned spinning_workers_ = 0;   // pool threads that spin for work
  unsigned in_host_calls_ = 0;      // threads in calls of the host
  unsigned spinning_helpers_ = 0;   // waiting threads that spin for short work
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Tasks that became ready while a timeline advanced or work was submitted, as in the kit. Tasks of a device
// that runs in its caller run on the thread that owns the list. Tasks of a device with workers are posted to
// its thread pool.
class TaskList {
 public:
  TaskList() = default;
  // For a thread of `pool`, or for a helper: a waiting thread that runs tasks of the pool and should return
  // soon.
  TaskList(ThreadPool& pool, bool is_helper) : pool_(&pool), is_helper_(is_helper) {}
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  ~TaskList() { run(); }

  void push_work(Task& task) { (task.thread_pool ? for_pools_ : work_).push(task); }
  void push_call(Task& task) {
    task.is_call = true;
    calls_.push(task);
  }
  // Posts tasks to their thread pools. Call it before anything that may take long.
  void post_to_pools();
  // Runs all tasks, and those that become ready meanwhile; queue work before calls. Call it without locks
  // held.
  void run();

 private:
  ThreadPool* const pool_ = nullptr;
  const bool is_helper_ = false;
  TaskQueue work_;
  TaskQueue calls_;
  TaskQueue for_pools_;
};

}  // namespace halyard::local
