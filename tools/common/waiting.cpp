// A timer on the tool's loop draws the line.
#include "common/waiting.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "common/failure.h"
#include "common/loop.h"
#include "common/progress.h"

namespace halyard::tools {

namespace asio = boost::asio;

struct Waiting::State : std::enable_shared_from_this<Waiting::State> {
  using Clock = std::chrono::steady_clock;

  explicit State(asio::io_context& context) : timer(context) {}

  // Draws the line if it is due. Returns the time until the next check. A phase that begins after this call
  // is checked before its first second has passed.
  Clock::duration show() {
    constexpr std::chrono::seconds kPatience(1);
    constexpr std::chrono::milliseconds kPause(500);
    const std::lock_guard lock(mutex);
    if (phase.empty()) return kPatience;
    const Clock::duration taken = Clock::now() - since;
    if (taken < kPatience) return kPatience - taken;
    progress.show(0, 0,
                  fmt::format("{}, {} s", phase, std::chrono::floor<std::chrono::seconds>(taken).count()));
    return kPause;
  }

  void start_timer(Clock::duration pause) {
    timer.expires_after(pause);
    timer.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error && !self->is_over) self->start_timer(self->show());
    });
  }

  asio::steady_timer timer;  // only used by the loop's thread
  std::atomic<bool> is_over = false;

  std::mutex mutex;  // guards the members below
  Progress progress{"waiting:"};
  std::string phase;  // empty: none
  Clock::time_point since;
};

std::unique_ptr<Waiting> Waiting::on_terminal() {
  if (::isatty(STDERR_FILENO) != 1) return nullptr;
  try {
    return std::unique_ptr<Waiting>(new Waiting(Loop::get()));
  } catch (const std::system_error&) {
    return nullptr;
  }
}

Waiting::Waiting(std::shared_ptr<Loop> loop)
    : loop_(std::move(loop)), state_(std::make_shared<State>(loop_->context())) {
  state_->start_timer(state_->show());
  loop_->start();
}

Waiting::~Waiting() {
  state_->is_over = true;
  end();
}

void Waiting::begin(std::string_view phase) {
  const std::lock_guard lock(state_->mutex);
  state_->phase = phase;
  state_->since = State::Clock::now();
}

void Waiting::end() {
  const std::lock_guard lock(state_->mutex);
  state_->phase.clear();
  state_->progress.clear();
}

void Waiting::clear() {
  const std::lock_guard lock(state_->mutex);
  state_->progress.clear();
}

}  // namespace halyard::tools
