// Four times a second a handler is posted; if it has not run a quarter of a second later, no thread is free.
#include "server/threads.h"

#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <system_error>
#include <thread>

namespace halyard::device_server {

namespace {
constexpr auto kBeat = std::chrono::milliseconds(250);
constexpr auto kIdle = std::chrono::seconds(5);  // then a thread that was added ends
}  // namespace

void Threads::run_handlers(bool stays) {
  for (;;) {
    try {
      // An added thread leaves when its time is over, or its handler, whichever comes later.
      if (stays) {
        io_.run();
      } else {
        io_.run_for(kIdle);
      }
      break;
    } catch (const std::exception& error) {
      log_(fmt::format("a handler has failed: {}", error.what()));
    }
  }
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_all();
}

// Under the lock.
void Threads::add(bool stays) {
  try {
    std::thread([this, stays] { run_handlers(stays); }).detach();
    ++running_;
  } catch (const std::system_error& error) {
    log_(fmt::format("cannot start another thread: {}", error.what()));
  }
}

void Threads::run(size_t threads, size_t more, const std::function<void()>& beat) {
  const auto work = boost::asio::make_work_guard(io_);
  std::unique_lock lock(mutex_);
  for (size_t i = 0; i < threads; ++i) add(true);
  while (!is_stopped_) {
    if (!has_beaten_ && running_ < threads + more) add(false);
    has_beaten_ = false;
    boost::asio::post(io_, [this] {
      const std::lock_guard beaten(mutex_);
      has_beaten_ = true;
    });
    changed_.wait_for(lock, kBeat, [this] { return is_stopped_; });
    lock.unlock();
    beat();
    lock.lock();
  }
  changed_.wait(lock, [this] { return running_ == 0; });
}

void Threads::stop() {
  io_.stop();
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  changed_.notify_all();
}

size_t Threads::running() const {
  const std::lock_guard lock(mutex_);
  return running_;
}

}  // namespace halyard::device_server
