// A timer for the thread; the handler of its signal waits for the other thread.
#include "interruption.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <stdexcept>

#include "session.h"

namespace halyard::cts {

namespace {

constexpr int64_t kMaxStopped = 100'000;  // ns; maximum time for which a call is stopped
constexpr long kMaxDelay = 100'000;       // ns
constexpr long kStep = 20;                // ns

enum Stage : int { idle, stopped, served };
enum Phase : int { before, inside, after };

// State that the handler can access.
std::atomic<int> stage = idle;
std::atomic<int> phase = before;
std::atomic<int> phase_when_stopped = before;
timer_t timer;
struct sigaction previous;

int the_signal() { return SIGRTMIN + 5; }

void stop(int) {
  const int error = errno;
  phase_when_stopped = phase.load();
  stage = stopped;
  for (const int64_t end = now_ns() + kMaxStopped; stage != served && now_ns() < end;) sched_yield();
  errno = error;
}

}  // namespace

Interruption::Interruption() {
  struct sigaction action = {};
  action.sa_handler = stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = the_signal();
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  stage = idle;
  if (sigaction(the_signal(), &action, &previous) != 0 || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
    throw std::runtime_error("the system gives no timer for a thread");
}

Interruption::~Interruption() {
  timer_delete(timer);
  sigaction(the_signal(), &previous, nullptr);
}

void Interruption::during(const std::function<void()>& call) {
  phase = before;
  stage = idle;
  const long jitter = static_cast<long>(rounds_++ * 2654435761u >> 24);  // ns, below 256
  const itimerspec when = {{0, 0}, {0, std::clamp(delay_ns_ + jitter, 1L, kMaxDelay)}};
  timer_settime(timer, 0, &when, nullptr);
  phase = inside;
  call();
  phase = after;
  while (stage != served) sched_yield();
  delay_ns_ = std::clamp(delay_ns_ + (phase_when_stopped == before  ? kStep
                                      : phase_when_stopped == after ? -kStep
                                                                    : 0),
                         1L, kMaxDelay);
}

void serve_interruptions(const std::function<void()>& action, const std::function<bool()>& over) {
  while (!over()) {
    if (stage != stopped) {
      sched_yield();
      continue;
    }
    action();
    stage = served;
  }
}

}  // namespace halyard::cts
