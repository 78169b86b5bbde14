// Starting, feeding and joining the threads.
#include "workers.h"

#include <csignal>
#include <system_error>

namespace halyard::local {

namespace {

// A thread inherits what its starter blocks: signals are for the program's own threads.
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

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    threads.swap(threads_);
    wake_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

Result<> Workers::start() {
  const std::lock_guard lock(mutex_);
  threads_.reserve(limit_);  // starting one more allocates nothing of ours
  try {
    start_thread();
  } catch (const std::system_error& error) {
    return fail(Code::RESOURCE_EXHAUSTED,
                "cannot start a worker thread: {}; end other threads or raise the limit on them",
                error.code().message());
  }
  return {};
}

void Workers::start_thread() {
  const SignalsBlocked blocked;
  std::thread& thread = threads_.emplace_back([this] { work(); });
  pthread_setname_np(thread.native_handle(), "halyard-worker");
}

// All under the lock, waking too: who sees `due` done may close the device at once, and so free the lock.
void Workers::post(Due& due) {
  const std::lock_guard lock(mutex_);
  queue_.push(due);
  const unsigned queued = queued_.load(std::memory_order_relaxed) + 1;
  queued_.store(queued, std::memory_order_relaxed);
  if (queued > idle_ && threads_.size() < limit_) {
    try {
      start_thread();
    } catch (const std::exception&) {  // there is one thread at least
    }
  }
  wake_.notify_one();
}

unsigned Workers::spare() {
  const std::lock_guard lock(mutex_);
  const unsigned busy =
      static_cast<unsigned>(threads_.size()) - idle_ + queued_.load(std::memory_order_relaxed);
  return busy < limit_ ? limit_ - busy : 0;
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (Due* due = queue_.pop()) {
      queued_.store(queued_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
      lock.unlock();
      DueList made_due(*this);
      due->run(*due, made_due);
      made_due.run();
      lock.lock();
    } else if (stopping_) {
      return;
    } else {
      ++idle_;
      wake_.wait(lock);
      --idle_;
    }
  }
}

}  // namespace halyard::local
