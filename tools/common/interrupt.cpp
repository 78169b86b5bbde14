// SIGINT to a flag, and to an event where a thread waits for it.
#include "common/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace halyard::tools {

namespace {

// Whether this thread may be the one that SIGINT interrupts.
void accept_signal(bool accepted) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::pthread_sigmask(accepted ? SIG_UNBLOCK : SIG_BLOCK, &set, nullptr);
}

// A signal handler reaches nothing else.
std::atomic<bool> signalled = false;
std::atomic<int> event = -1;

void notify(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

void on_signal(int) {
  const int error = errno;
  signalled = true;
  if (const int descriptor = event; descriptor >= 0) notify(descriptor);
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  struct sigaction action = {};
  if (::sigaction(SIGINT, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
  signalled = false;
  action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;  // the second one does what SIGINT does
  caught_ = ::sigaction(SIGINT, &action, nullptr) == 0;
}

Interrupt::Interrupt(std::function<void()> stop) : Interrupt() {
  if (!caught_) return;
  stop_ = std::move(stop);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
  event = wake_;
  watcher_ = std::thread([this] { watch(); });
  accept_signal(false);  // the thread that only waits takes it
}

Interrupt::~Interrupt() {
  if (caught_) std::signal(SIGINT, SIG_DFL);
  event = -1;
  over_ = true;
  if (wake_ >= 0) notify(wake_);
  if (watcher_.joinable()) {
    watcher_.join();
    accept_signal(true);
  }
  if (wake_ >= 0) ::close(wake_);
}

bool Interrupt::happened() const { return caught_ && signalled; }

void Interrupt::watch() {
  constexpr int kPauseMs = 50;
  pollfd watched = {wake_, POLLIN, 0};
  while (true) {
    ::poll(&watched, 1, signalled ? kPauseMs : -1);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(wake_, &count, sizeof count);
    if (over_) return;
    if (signalled) stop_();
  }
}

Failure Interrupt::explain(Failure failure) const {
  if (!happened() || failure.code != HALYARD_CANCELLED) return failure;
  failure.text = "stopped by Ctrl-C: " + failure.text;
  failure.exit_code = kInterrupted;
  return failure;
}

}  // namespace halyard::tools
