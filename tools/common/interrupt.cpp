// Uses a signal set of Asio, and a timer that calls `stop` repeatedly.
#include "common/interrupt.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "common/loop.h"

namespace halyard::tools {

namespace asio = boost::asio;

namespace {

struct Signal {
  int number;
  std::string_view cause;
};
constexpr Signal kSignals[] = {{SIGINT, "Ctrl-C"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};

bool is_ignored(int number) {
  struct sigaction action = {};
  return ::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN;
}

// Changes how Asio's handler is installed: interrupted system calls are restarted, and the next such signal
// terminates the process even if no handler of the loop has run by then.
void catch_once(int number) {
  struct sigaction action = {};
  if (::sigaction(number, nullptr, &action) != 0) return;
  action.sa_flags |= SA_RESTART | SA_RESETHAND;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

// Used by the thread that runs the io_context, except `signalled`. Shared by the handlers.
struct Interrupt::State : std::enable_shared_from_this<Interrupt::State> {
  State(asio::io_context& context, std::function<void()> action)
      : signals(context), timer(context), stop(std::move(action)) {
    for (const Signal& signal : kSignals) {
      if (is_ignored(signal.number)) continue;
      signals.add(signal.number);
      catch_once(signal.number);
    }
  }

  void begin() {
    signals.async_wait([self = shared_from_this()](const boost::system::error_code& error, int number) {
      if (error || self->is_over) return;
      self->signalled = number;
      self->signals.clear();  // the next signal of any kind terminates the process
      self->ask();
    });
  }

  void ask() {
    constexpr std::chrono::milliseconds kPause(50);
    if (!stop) return;
    stop();
    timer.expires_after(kPause);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->is_over) self->ask();
    });
  }

  void end() {
    is_over = true;
    signals.clear();
    signals.cancel();
    timer.cancel();
  }

  asio::signal_set signals;
  asio::steady_timer timer;
  const std::function<void()> stop;  // may be empty
  bool is_over = false;
  std::atomic<int> signalled = 0;  // the number of the first signal
};

Interrupt::Interrupt() : own_(std::make_unique<asio::io_context>(1)) {
  state_ = std::make_shared<State>(*own_, nullptr);
  state_->begin();
}

Interrupt::Interrupt(std::function<void()> stop) : loop_(Loop::get()) {
  state_ = std::make_shared<State>(loop_->context(), std::move(stop));
  state_->begin();
  loop_->start();
  // Blocks the signals in this thread, because only the loop's thread receives them.
  sigset_t set;
  ::sigemptyset(&set);
  for (const Signal& signal : kSignals) ::sigaddset(&set, signal.number);
  ::pthread_sigmask(SIG_BLOCK, &set, &unblocked_);
}

Interrupt::~Interrupt() {
  if (!loop_) {
    state_->end();
    return;
  }
  if (loop_.use_count() == 1) loop_->stop();
  loop_->run([this] { state_->end(); });
  ::pthread_sigmask(SIG_SETMASK, &unblocked_, nullptr);
}

bool Interrupt::happened() const {
  if (own_) own_->poll();
  return state_->signalled != 0;
}

std::string_view Interrupt::cause() const {
  for (const Signal& signal : kSignals)
    if (signal.number == state_->signalled) return signal.cause;
  return "no signal";
}

int Interrupt::exit_code() const { return 128 + state_->signalled; }

void Interrupt::release_in_child() {
  for (const Signal& signal : kSignals)
    if (!is_ignored(signal.number)) std::signal(signal.number, SIG_DFL);
}

Failure Interrupt::explain(Failure failure) const {
  if (!happened() || failure.code != HALYARD_CANCELLED) return failure;
  failure.text = fmt::format("stopped by {}: {}", cause(), failure.text);
  failure.exit_code = exit_code();
  return failure;
}

}  // namespace halyard::tools
