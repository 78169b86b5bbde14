// The io_context and its thread.
#include "common/loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <thread>
#include <utility>

namespace halyard::tools {

namespace asio = boost::asio;

struct Loop::State {
  asio::io_context context{1};  // one thread
  asio::executor_work_guard<asio::io_context::executor_type> guard{context.get_executor()};
  std::thread thread;
};

std::shared_ptr<Loop> Loop::get() {
  static std::weak_ptr<Loop> current;
  std::shared_ptr<Loop> loop = current.lock();
  if (!loop) current = loop = std::shared_ptr<Loop>(new Loop);
  return loop;
}

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() { stop(); }

asio::io_context& Loop::context() { return state_->context; }

void Loop::start() {
  if (state_->thread.joinable()) return;
  // The thread inherits its mask, so that no signal reaches it before the mask is set.
  sigset_t mask;
  sigset_t before;
  ::sigfillset(&mask);
  ::pthread_sigmask(SIG_SETMASK, &mask, &before);
  try {
    state_->thread = std::thread([context = &state_->context] { context->run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Loop::stop() {
  if (!state_->thread.joinable()) return;
  state_->context.stop();
  state_->thread.join();
}

}  // namespace halyard::tools
