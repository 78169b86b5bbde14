// A pool of one thread.
#include "loader.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace halyard::tools::serve {

void Loader::post(std::move_only_function<void()> work) {
  boost::asio::post(thread_, [this, work = std::move(work)]() mutable {
    set_loading(true);
    work();
    set_loading(false);
  });
}

bool Loader::finish(Clock::time_point end) {
  thread_.stop();
  std::unique_lock lock(mutex_);
  if (!has_loaded_.wait_until(lock, end, [this] { return !is_loading_; })) return false;
  lock.unlock();
  thread_.join();
  return true;
}

void Loader::set_loading(bool is_loading) {
  const std::lock_guard lock(mutex_);
  is_loading_ = is_loading;
  has_loaded_.notify_all();
}

}  // namespace halyard::tools::serve
