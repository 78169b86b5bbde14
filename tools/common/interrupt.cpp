// Signals to a number, and to an event where a thread waits for it.
#include "common/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace halyard::tools {

namespace {

struct Signal {
  int number;
  std::string_view cause;
};
constexpr Signal kSignals[] = {{SIGINT, "Ctrl-C"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};

// A signal handler reaches nothing else.
std::atomic<int> signalled = 0;    // the number of the first one
std::atomic<uint64_t> caught = 0;  // bit n: signal n is
std::atomic<int> event = -1;

bool is_caught(int number) { return (caught >> number & 1) != 0; }

// Each of those that are caught ends the process again.
void release_signals() {
  for (const Signal& signal : kSignals)
    if (is_caught(signal.number)) std::signal(signal.number, SIG_DFL);
}

void notify(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor, &one, sizeof one);
}

void on_signal(int number) {
  const int error = errno;
  int none = 0;
  signalled.compare_exchange_strong(none, number);
  release_signals();
  if (const int descriptor = event; descriptor >= 0) notify(descriptor);
  errno = error;
}

}  // namespace

Interrupt::Interrupt() {
  signalled = 0;
  uint64_t bits = 0;
  for (const Signal& signal : kSignals) {
    struct sigaction action = {};
    if (::sigaction(signal.number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      bits |= uint64_t{1} << signal.number;
  }
  caught = bits;
  for (const Signal& signal : kSignals) {
    if (!is_caught(signal.number)) continue;
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal.number, &action, nullptr);
  }
}

Interrupt::Interrupt(std::function<void()> stop) : Interrupt() {
  if (caught == 0) return;
  stop_ = std::move(stop);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) throw std::system_error(errno, std::generic_category(), "cannot make an eventfd");
  event = wake_;
  watcher_ = std::thread([this] { watch(); });
  // The thread that only waits takes them.
  sigset_t set;
  ::sigemptyset(&set);
  for (const Signal& signal : kSignals) ::sigaddset(&set, signal.number);
  ::pthread_sigmask(SIG_BLOCK, &set, &unblocked_);
}

Interrupt::~Interrupt() {
  release_signals();
  caught = 0;
  event = -1;
  over_ = true;
  if (wake_ >= 0) notify(wake_);
  if (watcher_.joinable()) {
    watcher_.join();
    ::pthread_sigmask(SIG_SETMASK, &unblocked_, nullptr);
  }
  if (wake_ >= 0) ::close(wake_);
}

bool Interrupt::happened() const { return signalled != 0; }

std::string_view Interrupt::cause() const {
  for (const Signal& signal : kSignals)
    if (signal.number == signalled) return signal.cause;
  return "no signal";
}

int Interrupt::exit_code() const { return 128 + signalled; }

void Interrupt::release_in_child() { release_signals(); }

void Interrupt::watch() {
  constexpr int kPauseMs = 50;
  pollfd watched = {wake_, POLLIN, 0};
  while (true) {
    ::poll(&watched, 1, signalled != 0 ? kPauseMs : -1);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(wake_, &count, sizeof count);
    if (over_) return;
    if (signalled != 0) stop_();
  }
}

Failure Interrupt::explain(Failure failure) const {
  if (!happened() || failure.code != HALYARD_CANCELLED) return failure;
  failure.text = fmt::format("stopped by {}: {}", cause(), failure.text);
  failure.exit_code = exit_code();
  return failure;
}

}  // namespace halyard::tools
