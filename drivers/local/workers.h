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

  unsigned limit() const { return limit_; }  // threads
  // How many threads have nothing to do now, those included that have not been started.
  unsigned spare();
  bool has_queued() const { return queued_.load(std::memory_order_relaxed) != 0; }

 private:
  std::error_code start_thread();
  void work();

  const unsigned limit_;
  std::mutex mutex_;  // of all that follows; `queued_` may be read without
  std::condition_variable wake_;
  DueQueue queue_;
  std::atomic<unsigned> queued_ = 0;
  unsigned busy_ = 0;  // threads that have taken something
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace halyard::local
