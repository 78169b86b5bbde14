// A buffer that one thread writes.
#include "log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace halyard::tools::serve {

namespace {

constexpr size_t kMaxBytes = 1 << 20;

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now - seconds).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)), milliseconds);
}

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a full disk or closed pipe: drop the lines
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

// Shared with the thread, because the thread may stay blocked in a write.
struct Log::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::string buffer;
  bool is_over = false;
  bool has_ended = false;
  bool is_writing = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return is_over || !buffer.empty(); });
      if (buffer.empty()) break;
      const std::string text = std::exchange(buffer, {});
      is_writing = true;
      lock.unlock();
      write_all(text);
      lock.lock();
      is_writing = false;
      changed.notify_all();
    }
    has_ended = true;
    changed.notify_all();
  }
};

Log::Log(Metrics& metrics) : metrics_(metrics), state_(std::make_shared<State>()) {
  // Blocks signals, because the server's threads handle them.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([state = state_] { state->run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Log::~Log() {
  std::unique_lock lock(state_->mutex);
  state_->is_over = true;
  state_->changed.notify_all();
  const bool ended =
      state_->changed.wait_for(lock, std::chrono::seconds(1), [&] { return state_->has_ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void Log::flush() {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, std::chrono::seconds(1),
                           [&] { return state_->buffer.empty() && !state_->is_writing; });
}

void Log::add(std::string_view level, std::string_view event, std::span<const Field> fields) {
  Json line = {{"time", timestamp()}, {"level", level}, {"event", event}};
  for (const auto& [name, value] : fields) line[std::string(name)] = value;
  const std::string text = line.dump(-1, ' ', true, Json::error_handler_t::replace) + "\n";
  const std::lock_guard lock(state_->mutex);
  if (state_->buffer.size() + text.size() > kMaxBytes) {
    metrics_.dropped_log_lines.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  state_->buffer += text;
  state_->changed.notify_all();
}

}  // namespace halyard::tools::serve
