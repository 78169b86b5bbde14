// The thread that loads models, so that loading does not delay requests.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "metrics.h"

namespace halyard::tools::serve {

// Any thread, except finish().
class Loader {
 public:
  // Runs the work on the thread, after all earlier work.
  void post(std::move_only_function<void()> work);
  // Starts no further work, and waits for the current work until `end`. False: it still runs, so the objects
  // that it uses must stay.
  bool finish(Clock::time_point end);

 private:
  void set_loading(bool is_loading);

  std::mutex mutex_;
  std::condition_variable has_loaded_;
  bool is_loading_ = false;  // under the mutex
  boost::asio::thread_pool thread_{1};
};

}  // namespace halyard::tools::serve
