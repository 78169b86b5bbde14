// Workers: the threads of one device, and the queue that they take work from. A thread is started when there
// is work that no idle thread can take, up to a limit; all are joined when the device closes.
//
// Not Asio's thread pool, the project's event loop elsewhere: this device waits for no timer and no file
// descriptor, what it posts is a link that its owner has allocated already (a pool of handlers would allocate
// for each post), and a driver needs no package that way. What is left is a queue, a lock and a condition.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "due.h"
#include "estimate.h"
#include "status.h"

namespace halyard::local {

class Workers {
 public:
  explicit Workers(unsigned limit) : limit_(limit) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  // Joins the threads. Nothing is queued by then; not on one of the threads.
  ~Workers();

  // Once, before anything is posted. RESOURCE_EXHAUSTED: the system starts no thread.
  Result<> start();
  // `due.run` is called on one of the threads. Any thread. As soon as it can have run, the pool may be gone.
  void post(Due& due);
  // Takes it out of the queue; false where `due.run` was or is being called.
  bool take_back(Due& due);
  // Where something is queued still: who was woken for it may have to wait for a processor.
  void wake_another() {
    if (has_queued()) wake_.notify_one();
  }
  // The calling thread is one of these as long as one of them has nothing to do: it does what is queued and
  // brief until `over()`, but not for long. Where nothing is under way it returns at once.
  template <typename Over>
  void help(Over&& over) {
    if (!is_under_way()) return;
    const Stopwatch whole(true);
    Stopwatch idle(true);
    const auto is_late = [&] { return is_too_long(idle) || whole.elapsed() >= kBrief; };
    std::unique_lock lock(mutex_);
    while (!over() && is_under_way() && !is_late()) {
      if (has_brief()) {
        do_first(lock, true);
        idle = Stopwatch(true);
      } else {
        look_out(lock, guests_, [&] { return over() || is_late(); });
      }
    }
    if (!queue_.empty()) wake_one();  // nobody was woken for what this thread might have done
  }

  // As long as it lives, threads that have helped stay awake for more, if `expects_help`. Where there are
  // more threads than processors they would be in the way of those who work.
  class Company {
   public:
    Company(Workers& workers, bool expects_help) : workers_(expects_help ? &workers : nullptr) {
      if (workers_) workers_->expected_.fetch_add(1, std::memory_order_relaxed);
    }
    Company(const Company&) = delete;
    Company& operator=(const Company&) = delete;
    ~Company() {
      if (workers_) workers_->expected_.fetch_sub(1, std::memory_order_relaxed);
    }

   private:
    Workers* const workers_;
  };

  unsigned limit() const { return limit_; }  // threads
  // How many threads have nothing to do now, those included that have not been started.
  unsigned spare();
  // One of the threads is about to be in a call of the host's, which may take long and even wait for what is
  // queued here [R88]: until it is back it does not count, and another one may be started in its place.
  void leave();
  void come_back();
  bool has_queued() const { return queued_.load(std::memory_order_relaxed) != 0; }

 private:
  std::error_code start_thread();
  void wake_one();
  void work();
  void do_first(std::unique_lock<std::mutex>& lock, bool is_guest);
  bool has_brief() const { return has_queued() && queue_.first()->is_brief; }
  // Until something changes or `stop()`. It may come sooner than a thread could be woken for it; and none is
  // woken for what this one finds: it is counted in `looking`. It does not yield: a thread that is said to
  // look should run.
  template <typename Stop>
  void look_out(std::unique_lock<std::mutex>& lock, unsigned& looking, Stop&& stop) {
    ++looking;
    lock.unlock();
    const unsigned queued = queued_;
    const unsigned busy = busy_;
    while (queued_ == queued && busy_ == busy && !stop()) continue;
    lock.lock();
    --looking;
  }
  // Nothing to do since then: whether it is time to sleep.
  bool is_too_long(const Stopwatch& idle) const {
    const bool stays = has_processors_ && expected_.load(std::memory_order_relaxed) != 0;
    return idle.elapsed() >= (stays ? kStaysAwake : kWorthWaking);
  }
  bool is_under_way() const {
    const unsigned busy = busy_.load(std::memory_order_relaxed);
    return busy < limit_ && (busy != 0 || has_queued());
  }

  const unsigned limit_;
  const bool has_processors_ = limit_ <= std::thread::hardware_concurrency();
  std::atomic<unsigned> expected_ = 0;  // pieces of work under way that expect help
  std::mutex mutex_;                    // of all that follows; `queued_` and `busy_` may be read without
  std::condition_variable wake_;
  DueQueue queue_;
  std::atomic<unsigned> queued_ = 0;
  std::atomic<unsigned> busy_ = 0;  // threads that do what they have taken
  unsigned waiting_ = 0;            // threads
  unsigned woken_ = 0;              // of those, who will look into the queue as soon as they run
  unsigned residents_ = 0;          // threads that will look into the queue in a moment
  unsigned away_ = 0;               // threads in calls of the host's
  unsigned guests_ = 0;             // others that will, for what is brief
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace halyard::local
