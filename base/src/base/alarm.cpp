// Alarms. Each has one timer of the loop; any number of changes of its time start that timer at most once.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "base/loop.h"
#include "base/origin.h"

namespace halyard {

// Shared with the timer's handler, which may run after the alarm is destroyed.
struct Alarm::State : std::enable_shared_from_this<Alarm::State> {
  State(boost::asio::io_context& context, std::function<void()> what)
      : timer(context), ring(std::move(what)) {}

  const Origin origin;
  std::mutex mutex;
  boost::asio::steady_timer timer;
  std::function<void()> ring;
  std::optional<Loop::Clock::time_point> time;   // when to ring
  std::optional<Loop::Clock::time_point> armed;  // when the timer expires; empty while it does not run

  // The caller holds the lock.
  void arm(Loop::Clock::time_point at) {
    timer.expires_at(at);  // cancels the previous wait, if any
    timer.async_wait(
        [self = shared_from_this(), at](const boost::system::error_code&) { self->expired(at); });
    armed = at;
  }

  void expired(Loop::Clock::time_point at) {
    const std::lock_guard lock(mutex);
    if (armed != at) return;  // moved to an earlier time
    armed.reset();
    if (!time) return;
    if (Loop::Clock::now() < *time) {
      try {
        return arm(*time);
      } catch (const std::exception&) {
        // Out of memory for a wait: ringing early is better than never.
      }
    }
    time.reset();
    ring();
  }
};

Alarm::Alarm(Ref<Loop> loop, std::function<void()> ring)
    : loop_(std::move(loop)), state_(std::make_shared<State>(loop_->context(), std::move(ring))) {}

Alarm::~Alarm() {
  if (state_->origin.is_inherited()) {  // after fork() the timer's loop may hold the lock for ever
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  const std::lock_guard lock(state_->mutex);
  state_->time.reset();
  state_->armed.reset();
  state_->timer.cancel();
}

void Alarm::set(Loop::Clock::time_point time) {
  static_cast<void>(loop_->context());  // throws if nothing can run the loop
  const std::lock_guard lock(state_->mutex);
  if (!state_->armed || *state_->armed > time) state_->arm(time);
  state_->time = time;
}

void Alarm::clear() {
  if (state_->origin.is_inherited()) return;
  const std::lock_guard lock(state_->mutex);
  state_->time.reset();
}

}  // namespace halyard
