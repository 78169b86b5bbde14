// ThreadPool: the threads of one device and their task queue. A new task starts a thread if no thread is idle
// and the limit is not reached; the destructor joins all threads.
//
// The pool does not use Asio, the project's event loop, because the device waits for no timer and no file
// descriptor; because the queue links tasks that their owners have already allocated, while Asio would
// allocate for each post; and because the driver would depend on one more package. The pool needs only a
// queue, a lock and a condition variable.
//
// TaskList: the tasks that became ready together. Both classes are in this file, because a list posts to
// pools, and the threads of a pool run a list after each task.
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
  // Joins the threads. The queue must be empty. Must not be called on a thread of the pool.
  ~ThreadPool();

  // Must be called once, before post(). RESOURCE_EXHAUSTED: the system cannot start a thread.
  Result<> start();
  // Runs `task` on a thread of the pool. Thread-safe. The pool may be destroyed as soon as the task may have
  // run.
  void post(Task& task);
  // Removes a task from the queue. Returns false if the task is running or has run.
  bool take_back(Task& task);
  // If a task is still queued, wakes one more thread, because the thread that was woken for the task may have
  // no processor yet.
  void wake_another() {
    if (has_queued()) wake_.notify_one();
  }
  // Runs queued tasks that are expected to be short, until `over()`. The calling thread, which is about to
  // wait, takes the place of an idle worker and returns after about kBrief. If the pool is idle, it returns
  // at once.
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

  // While this object exists, and if `expects_help`, idle threads spin longer before they sleep, and for a
  // while after it. They do not if there are more threads than processors, because spinning would slow down
  // the working threads.
  class KeepAwake {
   public:
    KeepAwake(ThreadPool& thread_pool, bool expects_help)
        : thread_pool_(expects_help ? &thread_pool : nullptr) {
      if (thread_pool_) thread_pool_->shared_.fetch_add(1, std::memory_order_relaxed);
    }
    KeepAwake(const KeepAwake&) = delete;
    KeepAwake& operator=(const KeepAwake&) = delete;
    ~KeepAwake() {
      if (!thread_pool_) return;
      thread_pool_->has_shared_.store(true, std::memory_order_relaxed);
      thread_pool_->shared_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    ThreadPool* const thread_pool_;
  };

  unsigned limit() const { return limit_; }  // of threads
  // The number of threads without work, including those not started yet.
  unsigned idle_threads() const;
  // Called before and after a call of the host on a pool thread. The call may take long and may even wait for
  // queued work [R88], so the thread is not counted meanwhile and another thread may be started in its place.
  void begin_host_call();
  void end_host_call();
  bool has_queued() const { return queued_.load(std::memory_order_relaxed) != 0; }
  // Whether a thread that has been idle since `idle` started should sleep.
  bool is_idle_too_long(const Stopwatch& idle) const {
    const bool stays = has_processors_ && shared_.load(std::memory_order_relaxed) != 0;
    return idle.elapsed() >= (stays ? kStaysAwake : kWorthWaking);
  }

 private:
  std::error_code start_thread();
  void wake_one();
  void work();
  void run_first(std::unique_lock<std::mutex>& lock, bool is_helper);
  bool has_brief() const { return has_queued() && queue_.first()->is_brief; }
  // Spins until the queue or the number of busy threads changes, or until `stop()`. Spinning finds new work
  // sooner than waking a sleeping thread would. `spinning` counts this thread, so that no other thread is
  // woken for work that this thread will find. Does not yield, because a thread that counts as spinning must
  // be running.
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
  bool is_active() const {
    const unsigned busy = busy_.load(std::memory_order_relaxed);
    return busy < limit_ && (busy != 0 || has_queued());
  }
  // Whether there may soon be work, sooner than a sleeping thread could be woken: of busy threads, or of the
  // program, which shares some, or has just done so and may call again.
  bool expects_work() const {
    return is_active() || (has_processors_ && (shared_.load(std::memory_order_relaxed) != 0 ||
                                               has_shared_.load(std::memory_order_relaxed)));
  }

  const unsigned limit_;
  const bool has_processors_ = limit_ <= std::thread::hardware_concurrency();
  std::atomic<unsigned> shared_ = 0;      // KeepAwake objects that expect help
  std::atomic<bool> has_shared_ = false;  // one has ended since a thread went to sleep
  std::mutex mutex_;  // guards the fields below; `queued_` and `busy_` may be read without it
  std::condition_variable wake_;
  TaskQueue queue_;
  std::atomic<unsigned> queued_ = 0;
  std::atomic<unsigned> busy_ = 0;  // threads that run a task
  unsigned waiting_ = 0;            // threads that sleep
  unsigned woken_ = 0;              // threads that have been notified but still sleep
  unsigned spinning_workers_ = 0;   // pool threads that spin for work
  unsigned in_host_calls_ = 0;      // threads in calls of the host
  unsigned spinning_helpers_ = 0;   // waiting threads that spin for short work
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

// Tasks that became ready while a timeline advanced or work was submitted, as in the kit. Tasks of a device
// without workers run on the thread that owns the list. Tasks of a device with workers are posted to its
// thread pool.
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
  // Posts tasks to their thread pools. Call it before any step that may take long.
  void post_to_pools();
  // Runs all tasks, including those that become ready meanwhile; queue work before calls. Call it without
  // locks.
  void run();

 private:
  ThreadPool* const pool_ = nullptr;
  const bool is_helper_ = false;
  TaskQueue work_;
  TaskQueue calls_;
  TaskQueue for_pools_;
};

}  // namespace halyard::local
