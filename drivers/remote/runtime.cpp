// One thread may run a call of the host and another one may send, so the third receives.
#include "runtime.h"

#include <signal.h>

#include <exception>

#include "remote/stream.h"

namespace halyard::remote {

namespace {
constexpr int kThreads = 3;
}

Runtime::~Runtime() {
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
  for (const std::weak_ptr<Stream>& each : streams_)
    if (const std::shared_ptr<Stream> stream = each.lock()) stream->drop_receiver();
}

void Runtime::add(std::weak_ptr<Stream> stream) {
  const std::lock_guard lock(mutex_);
  for (std::weak_ptr<Stream>& each : streams_)
    if (each.expired()) return each.swap(stream);
  streams_.push_back(std::move(stream));
}

void Runtime::start() {
  const std::lock_guard lock(mutex_);
  if (!threads_.empty()) return;
  // Signals are for the threads of the program.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int i = 0; i < kThreads; ++i) threads_.emplace_back([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A handler that finds no memory ends nothing but itself; the connection's patience then ends the connection.
void Runtime::run() {
  for (;;) try {
      io_.run();
      return;
    } catch (const std::exception&) {
    }
}

void Runtime::take_calls(kit::TaskList& ready) {
  ready.run_work();
  kit::Task* call = ready.pop_call();
  if (!call) return;
  const std::lock_guard lock(mutex_);
  for (; call; call = ready.pop_call()) calls_.push(*call);
  has_calls_.store(true, std::memory_order_release);
}

void Runtime::run_calls() {
  if (!has_calls()) return;
  std::unique_lock lock(mutex_);
  if (is_calling_) return;
  is_calling_ = true;
  while (kit::Task* const call = calls_.pop()) {
    lock.unlock();
    {
      kit::TaskList ready;
      call->run(*call, ready);
    }
    lock.lock();
  }
  has_calls_.store(false, std::memory_order_release);
  is_calling_ = false;
}

}  // namespace halyard::remote
