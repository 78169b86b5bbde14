// Starts, wakes and joins the threads; decides where ready tasks run, and in which order.
#include "thread_pool.h"

#include <algorithm>
#include <csignal>
#include <new>

namespace halyard::local {

namespace {

// Blocks signals while a thread is created, because the thread inherits the signal mask of its creator, and
// signals must go to the program's own threads.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

ThreadPool::~ThreadPool() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    wake_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

Result<> ThreadPool::start() {
  const std::lock_guard lock(mutex_);
  threads_.reserve(limit_);  // so that starting a thread allocates nothing here
  if (const std::error_code error = start_thread())
    return fail(Code::RESOURCE_EXHAUSTED,
                "cannot start a worker thread: {}; end other threads or raise the limit on them",
                error.message());
  return {};
}

std::error_code ThreadPool::start_thread() {
  const SignalsBlocked blocked;
  try {
    threads_.emplace_back([this] {
      pthread_setname_np(pthread_self(), "halyard-worker");  // another thread would write a file
      work();
    });
    return {};
  } catch (const std::system_error& error) {
    return error.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

// The lock is held during the notification too, because as soon as the task has run, another thread may close
// the device, which destroys the lock.
void ThreadPool::post(Task& task) {
  const std::lock_guard lock(mutex_);
  queue_.push(task);
  ++queued_;
  const unsigned coming = woken_ + spinning_workers_ + (task.is_brief ? spinning_helpers_ : 0);
  if (queued_ > coming) wake_one();
}

bool ThreadPool::take_back(Task& task) {
  const std::lock_guard lock(mutex_);
  if (!task.is_queued) return false;
  queue_.remove(task);
  --queued_;
  return true;
}

// Called under the lock. Starts a thread if all are busy. If that fails, the existing threads (at least one)
// run the work.
void ThreadPool::wake_one() {
  const size_t there = threads_.size() - in_host_calls_;
  if (busy_ + queued_ > there && there < limit_) (void)start_thread();
  if (woken_ < waiting_) {
    ++woken_;
    wake_.notify_one();
  }
}

void ThreadPool::begin_host_call() {
  const std::lock_guard lock(mutex_);
  --busy_;
  ++in_host_calls_;
  if (!queue_.empty()) wake_one();
}

void ThreadPool::end_host_call() {
  const std::lock_guard lock(mutex_);
  --in_host_calls_;
  ++busy_;
}

unsigned ThreadPool::idle_threads() const {
  const unsigned wanted = busy_.load(std::memory_order_relaxed) + queued_.load(std::memory_order_relaxed);
  return wanted < limit_ ? limit_ - wanted : 0;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  Stopwatch idle(true);
  while (true) {
    if (!queue_.empty()) {
      run_first(lock, false);
      idle = Stopwatch(true);
    } else if (stopping_) {
      return;
    } else if (expects_work() && !is_idle_too_long(idle)) {
      spin(lock, spinning_workers_, [&] { return is_idle_too_long(idle); });
    } else {
      has_shared_.store(false, std::memory_order_relaxed);
      ++waiting_;
      wake_.wait(lock);
      --waiting_;
      woken_ = std::min(woken_ - (woken_ != 0), waiting_);
    }
  }
}

// Runs the first task of the queue, which must not be empty. Releases the lock meanwhile.
void ThreadPool::run_first(std::unique_lock<std::mutex>& lock, bool is_helper) {
  Task* const task = queue_.pop();
  --queued_;
  ++busy_;
  lock.unlock();
  TaskList ready(*this, is_helper);
  const bool is_call = task->is_call;
  if (is_call) begin_host_call();
  task->run(*task, ready);
  if (is_call) end_host_call();
  ready.run();
  lock.lock();
  --busy_;
}

// If a pool thread made exactly one task of its own device ready, and has nothing else to run, it runs that
// task itself, because waking another thread takes longer than many dispatches. A helper posts all tasks to
// the pool, including calls of the host, because they may take long.
void TaskList::post_to_pools() {
  if (is_helper_) {
    for (TaskQueue* queue : {&work_, &calls_})
      while (Task* task = queue->pop()) pool_->post(*task);
  }
  while (const Task* next = for_pools_.first()) {
    const bool is_only_task = !next->next_task && work_.empty() && calls_.empty();
    const bool is_own = pool_ == next->thread_pool && !is_helper_;
    if (is_only_task && is_own && !pool_->has_queued()) return;
    Task& task = *for_pools_.pop();
    task.thread_pool->post(task);
  }
}

void TaskList::run() {
  while (true) {
    post_to_pools();
    Task* next = work_.pop();
    if (!next) next = calls_.pop();
    if (!next) next = for_pools_.pop();
    if (!next) return;
    const bool is_host_call = next->is_call && pool_;
    if (is_host_call) pool_->begin_host_call();
    next->run(*next, *this);
    if (is_host_call) pool_->end_host_call();
  }
}

}  // namespace halyard::local
