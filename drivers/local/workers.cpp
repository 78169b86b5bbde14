// Starting, feeding and joining the threads.
#include "workers.h"

#include <algorithm>
#include <csignal>
#include <new>

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
  if (const std::error_code error = start_thread())
    return fail(Code::RESOURCE_EXHAUSTED,
                "cannot start a worker thread: {}; end other threads or raise the limit on them",
                error.message());
  return {};
}

std::error_code Workers::start_thread() {
  const SignalsBlocked blocked;
  try {
    std::thread& thread = threads_.emplace_back([this] { work(); });
    pthread_setname_np(thread.native_handle(), "halyard-worker");
    return {};
  } catch (const std::system_error& error) {
    return error.code();
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
}

// All under the lock, waking too: who sees `due` done may close the device at once, and so free the lock.
void Workers::post(Due& due) {
  const std::lock_guard lock(mutex_);
  queue_.push(due);
  ++queued_;
  const unsigned coming = woken_ + residents_ + (due.is_brief ? guests_ : 0);
  if (queued_ > coming) wake_one();
}

bool Workers::take_back(Due& due) {
  const std::lock_guard lock(mutex_);
  if (!due.is_queued) return false;
  queue_.remove(due);
  --queued_;
  return true;
}

// Under the lock. A thread is started where all have something to do; where none can be, there is one at
// least.
void Workers::wake_one() {
  if (busy_ + queued_ > threads_.size() && threads_.size() < limit_) (void)start_thread();
  if (woken_ < waiting_) {
    ++woken_;
    wake_.notify_one();
  }
}

unsigned Workers::spare() {
  const std::lock_guard lock(mutex_);
  const unsigned wanted = busy_ + queued_;
  return wanted < limit_ ? limit_ - wanted : 0;
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  Stopwatch idle(true);
  while (true) {
    if (!queue_.empty()) {
      do_first(lock, false);
      idle = Stopwatch(true);
    } else if (stopping_) {
      return;
    } else if (is_under_way() && !is_too_long(idle)) {
      // Those who are at it may soon need help, sooner than a thread could be woken.
      look_out(lock, residents_, [&] { return is_too_long(idle); });
    } else {
      ++waiting_;
      wake_.wait(lock);
      --waiting_;
      woken_ = std::min(woken_ - (woken_ != 0), waiting_);
    }
  }
}

// Of the queue, which is not empty; the lock is given back meanwhile.
void Workers::do_first(std::unique_lock<std::mutex>& lock, bool is_guest) {
  Due* const due = queue_.pop();
  --queued_;
  ++busy_;
  lock.unlock();
  DueList made_due(*this, is_guest);
  due->run(*due, made_due);
  made_due.run();
  lock.lock();
  --busy_;
}

}  // namespace halyard::local
