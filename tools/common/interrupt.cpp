// A handler for the signals. Work that cannot poll has a thread that waits for the handler.
#include "common/interrupt.h"

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <ctime>
#include <mutex>
#include <system_error>
#include <utility>

namespace halyard::tools {

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

// What the handler can access.
std::atomic<int> first_signal = 0;  // its number
sem_t signalled;

// The next signal of any kind terminates the process. Interrupted system calls are restarted.
void take_first(int number) {
  const int error = errno;
  Interrupt::release_in_child();
  int none = 0;
  if (first_signal.compare_exchange_strong(none, number)) ::sem_post(&signalled);
  errno = error;
}

void set_handler() {
  struct sigaction action = {};
  action.sa_handler = take_first;
  action.sa_flags = SA_RESTART;
  for (const Signal& signal : kSignals) ::sigaddset(&action.sa_mask, signal.number);
  for (const Signal& signal : kSignals)
    if (!is_ignored(signal.number)) ::sigaction(signal.number, &action, nullptr);
}

// Calls the function of the Interrupt that exists. The thread starts with the first of them and ends with the
// process: nothing waits for it then, and a process that is over soon need not wake it.
class Watch {
 public:
  static Watch& get() {
    static Watch* const watch = new Watch;  // not destroyed, because the thread uses it
    return *watch;
  }

  void begin(std::function<void()> stop) {
    const std::lock_guard lock(mutex_);
    stop_ = std::move(stop);
    if (!is_running_) start();
    is_running_ = true;
  }
  // Afterwards the function is not running.
  void end() {
    const std::lock_guard lock(mutex_);
    stop_ = nullptr;
  }

 private:
  Watch() { ::sem_init(&signalled, 0, 0); }

  // The thread inherits its mask, so that it receives no other signal. It allocates nothing, or it would get
  // an arena of its own.
  void start() {
    sigset_t mask;
    sigset_t before;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
    ::sigfillset(&mask);
    for (const Signal& signal : kSignals)
      if (::sigismember(&before, signal.number) == 0) ::sigdelset(&mask, signal.number);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    pthread_t thread = {};
    const int error = ::pthread_create(&thread, &attributes, run, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    if (error != 0) throw std::system_error(error, std::generic_category());
  }

  static void* run(void* watch) {
    while (true) {
      while (::sem_wait(&signalled) != 0) continue;
      while (first_signal != 0 && static_cast<Watch*>(watch)->ask()) {
        constexpr timespec kPause = {0, 50'000'000};
        ::nanosleep(&kPause, nullptr);
      }
    }
  }

  // False if no function is left.
  bool ask() {
    const std::lock_guard lock(mutex_);
    if (stop_) stop_();
    return stop_ != nullptr;
  }

  std::mutex mutex_;  // guards the members below
  std::function<void()> stop_;
  bool is_running_ = false;
};

}  // namespace

Interrupt::Interrupt() {
  first_signal = 0;
  Watch::get();
  set_handler();
}

Interrupt::Interrupt(std::function<void()> stop) : has_watch_(true) {
  first_signal = 0;
  Watch::get().begin(std::move(stop));
  set_handler();
  // Blocks the signals in this thread, because only the watching thread receives them.
  sigset_t set;
  ::sigemptyset(&set);
  for (const Signal& signal : kSignals) ::sigaddset(&set, signal.number);
  ::pthread_sigmask(SIG_BLOCK, &set, &unblocked_);
}

Interrupt::~Interrupt() {
  release_in_child();
  if (!has_watch_) return;
  Watch::get().end();
  ::pthread_sigmask(SIG_SETMASK, &unblocked_, nullptr);
}

bool Interrupt::happened() const { return first_signal != 0; }

std::string_view Interrupt::cause() const {
  for (const Signal& signal : kSignals)
    if (signal.number == first_signal) return signal.cause;
  return "no signal";
}

int Interrupt::exit_code() const { return 128 + first_signal; }

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
