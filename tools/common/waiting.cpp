// The thread that shows how long it has been.
#include "common/waiting.h"

#include <unistd.h>

#include <csignal>
#include <system_error>

#include "common/failure.h"

namespace halyard::tools {

std::unique_ptr<Waiting> Waiting::on_terminal() {
  if (::isatty(STDERR_FILENO) != 1) return nullptr;
  std::unique_ptr<Waiting> waiting(new Waiting);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);  // Ctrl-C is for the others
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    waiting->thread_ = std::thread([self = waiting.get()] { self->work(); });
  } catch (const std::system_error&) {
    waiting.reset();
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return waiting;
}

Waiting::~Waiting() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Waiting::begin(std::string_view what) {
  const std::lock_guard lock(mutex_);
  what_ = what;
  since_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Waiting::end() {
  const std::lock_guard lock(mutex_);
  what_.clear();
  progress_.clear();
}

void Waiting::clear() {
  const std::lock_guard lock(mutex_);
  progress_.clear();
}

void Waiting::work() {
  constexpr std::chrono::seconds kPatience(1);
  constexpr std::chrono::milliseconds kPause(500);
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (what_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto taken = std::chrono::steady_clock::now() - since_;
    if (taken < kPatience) {
      changed_.wait_for(lock, kPatience - taken);
      continue;
    }
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(taken).count();
    progress_.show(0, 0, fmt::format("{}, {} s", what_, seconds));
    changed_.wait_for(lock, kPause);
  }
}

}  // namespace halyard::tools
