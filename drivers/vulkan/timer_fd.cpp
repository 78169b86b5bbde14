// Sets and reads the file descriptor.
#include "timer_fd.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace halyard::vulkan {

TimerFd::~TimerFd() {
  if (fd_ >= 0) ::close(fd_);
}

Result<> TimerFd::open() {
  fd_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  if (fd_ >= 0) return {};
  return fail(HALYARD_RESOURCE_EXHAUSTED,
              "cannot make a timer for a queue: {}; close files or raise the limit on them",
              std::generic_category().message(errno));
}

void TimerFd::set(uint64_t time) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const itimerspec at = {.it_interval = {},
                         .it_value = {.tv_sec = static_cast<time_t>(time / kSecond),
                                      .tv_nsec = static_cast<long>(time % kSecond)}};
  (void)::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at, nullptr);
}

void TimerFd::wait() {
  uint64_t times = 0;
  while (::read(fd_, &times, sizeof times) < 0 && errno == EINTR) {
  }
}

}  // namespace halyard::vulkan
