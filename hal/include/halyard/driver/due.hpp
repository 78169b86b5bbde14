// Of the kit (halyard/driver.hpp): what becomes due when timelines move, and the threads that do it.
#ifndef HALYARD_DRIVER_DUE_HPP_
#define HALYARD_DRIVER_DUE_HPP_

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace halyard::kit {

// Something to do, as a link of a list. `run` may free it. A driver with a list of its own derives its own
// Due from this.
template <typename Self, typename List>
struct DueLink {
  void (*run)(Self& self, List& due) = nullptr;
  Self* next_due = nullptr;
  bool is_queued = false;
};

// First in, first out. Not synchronised.
template <typename D>
class BasicDueQueue {
 public:
  bool empty() const { return !first_; }
  D* first() const { return first_; }
  void push(D& due) {
    due.next_due = nullptr;
    due.is_queued = true;
    (last_ ? last_->next_due : first_) = &due;
    last_ = &due;
  }
  D* pop() {  // null where empty
    D* const due = first_;
    if (!due) return nullptr;
    first_ = due->next_due;
    if (!first_) last_ = nullptr;
    due->is_queued = false;
    return due;
  }
  // One that is in it.
  void remove(D& due) {
    D* before = nullptr;
    for (D* at = first_; at != &due; at = at->next_due) before = at;
    (before ? before->next_due : first_) = due.next_due;
    if (last_ == &due) last_ = before;
    due.is_queued = false;
  }

 private:
  D* first_ = nullptr;
  D* last_ = nullptr;
};

class DueList;
struct Due : DueLink<Due, DueList> {};
using DueQueue = BasicDueQueue<Due>;

// What has become due while timelines moved, for whoever moved them to see to once all locks are given back
// [R32]. So a chain of work, however long, is a loop and not a recursion.
class DueList {
 public:
  DueList() = default;
  DueList(const DueList&) = delete;
  DueList& operator=(const DueList&) = delete;
  ~DueList() { run(); }

  void push_work(Due& due) { work_.push(due); }
  void push_call(Due& due) { calls_.push(due); }
  // Does all there is, and what becomes due by it; work before calls of the host [R88].
  void run() {
    do {
      run_work();
      if (Due* const call = calls_.pop()) call->run(*call, *this);
    } while (!work_.empty() || !calls_.empty());
  }
  // For a thread that leaves calls to another: the work alone, and then each call.
  void run_work() {
    while (Due* const work = work_.pop()) work->run(*work, *this);
  }
  Due* pop_call() { return calls_.pop(); }  // null: none

 private:
  DueQueue work_;
  DueQueue calls_;
};

// A thread that does what is posted to it, in order.
class Runner {
 public:
  Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() { stop(); }

  // `act` does one piece, on the thread. Throws std::system_error where there is no thread to be had.
  template <typename Act>
  void start(Act act) {
    thread_ = std::thread([this, act = std::move(act)] {
      while (Due* const due = next()) act(*due);
    });
  }
  void post(Due& due) {
    const std::lock_guard lock(mutex_);
    queue_.push(due);
    changed_.notify_one();
  }
  // After all that was posted.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  Due* next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    return queue_.pop();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  DueQueue queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_DUE_HPP_
