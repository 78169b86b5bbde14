// The loop over Asio. Steps wait in the loop's own list; Asio only runs a handler that takes the next step.
// So a failed allocation in Asio loses no step, and drain() can run steps on another thread.
#include "base/loop.h"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/origin.h"
#include "base/thread_local.h"

namespace halyard {

namespace asio = boost::asio;

const ObjectType Loop::kType = object_type<Loop>("loop");

namespace {
HALYARD_SMALL_THREAD_LOCAL thread_local int steps_here = 0;  // nested steps on this thread
}

struct Loop::State : std::enable_shared_from_this<Loop::State> {
  enum class Runner { own_thread, embedder, foreign_context };

  explicit State(Runner by, asio::io_context* foreign = nullptr) : runner(by), context(foreign) {}

  const Runner runner;
  const Origin origin;

  // After fork(), the loop's thread exists only in the parent process, and may hold the lock for ever.
  void check_origin() const {
    if (origin.is_inherited())
      throw std::system_error(
          std::make_error_code(std::errc::owner_dead),
          "the event loop was created before fork(), and its thread exists only in the parent "
          "process; create an instance in this process");
  }

  std::mutex mutex;
  asio::io_context* context;              // null until first used
  std::optional<asio::io_context> owned;  // empty if the io_context is the embedder's
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> guard;
  std::thread thread;
  bool is_closing = false;  // the thread ends when the list is empty

  Step* first = nullptr;  // posted steps that have not begun
  Step* last = nullptr;
  size_t running = 0;
  std::condition_variable changed;

  // The caller holds the lock. If an operation throws, nothing has changed.
  asio::io_context& get() {
    if (!context) {
      owned.emplace();
      context = &*owned;
    }
    if (runner == Runner::own_thread && !thread.joinable() && !is_closing) {
      guard.emplace(context->get_executor());
      // Blocks all signals, because the embedder's signals are for its own threads.
      sigset_t all, before;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_SETMASK, &all, &before);
      try {
        thread = std::thread([self = shared_from_this()] { self->context->run(); });
      } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
      }
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    return *context;
  }

  // Runs the next step. Returns false if there is none.
  bool run_step() {
    Step* step = nullptr;
    {
      const std::lock_guard lock(mutex);
      step = first;
      if (!step) return false;
      first = step->next;
      ++running;
    }
    ++steps_here;
    step->run(*step);
    --steps_here;
    const std::lock_guard lock(mutex);
    --running;
    changed.notify_all();
    return true;
  }
};

Ref<Loop> Loop::create() { return make<Loop>(std::make_shared<State>(State::Runner::own_thread)); }
Ref<Loop> Loop::run_by_embedder() { return make<Loop>(std::make_shared<State>(State::Runner::embedder)); }
Ref<Loop> Loop::on(asio::io_context& context) {
  return make<Loop>(std::make_shared<State>(State::Runner::foreign_context, &context));
}

Loop::~Loop() {
  if (state_->origin.is_inherited()) {  // leaks the state after fork()
    static_cast<void>(new std::shared_ptr<State>(std::move(state_)));
    return;
  }
  std::thread thread;
  {
    const std::lock_guard lock(state_->mutex);
    state_->guard.reset();
    state_->is_closing = true;
    thread = std::move(state_->thread);
  }
  if (thread.joinable() && thread.get_id() == std::this_thread::get_id()) {
    thread.detach();  // a step had the last reference; the thread runs the remaining steps and ends
    return;
  }
  if (thread.joinable()) thread.join();
  drain();
  // Handlers that Asio has not run hold the state, which owns the io_context. This breaks the cycle.
  state_->guard.reset();
  state_->context = nullptr;
  state_->owned.reset();
}

void Loop::post(Step& step) noexcept {
  if (state_->origin.is_inherited()) return;
  step.next = nullptr;
  const std::lock_guard lock(state_->mutex);
  (state_->first ? state_->last->next : state_->first) = &step;
  state_->last = &step;
  try {
    asio::post(state_->get(), [state = state_] { state->run_step(); });
  } catch (const std::exception&) {
    // The step stays in the list, so a later handler or drain() runs it.
  }
}

void Loop::drain() {
  if (state_->origin.is_inherited()) return;
  std::unique_lock lock(state_->mutex, std::defer_lock);
  do {  // the running step may post another one
    if (lock.owns_lock()) lock.unlock();
    while (state_->run_step()) {
    }
    if (steps_here != 0) return;
    lock.lock();
    state_->changed.wait(lock, [this] { return state_->running == 0; });
  } while (state_->first);
}

size_t Loop::run(Clock::time_point deadline) {
  state_->check_origin();
  asio::io_context* context = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    context = &state_->get();
    if (context->stopped()) context->restart();
    // run() must not return when the queue is empty, because a step may be posted before the deadline.
    if (!state_->guard) state_->guard.emplace(context->get_executor());
  }
  size_t count = context->poll();
  if (count == 0) count = context->run_one_until(deadline);
  return count + context->poll();
}

void Loop::interrupt_run() {
  if (state_->origin.is_inherited()) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->context) state_->context->stop();
}

bool Loop::is_run_by_embedder() const { return state_->runner == State::Runner::embedder; }

asio::io_context& Loop::context() {
  state_->check_origin();
  const std::lock_guard lock(state_->mutex);
  return state_->get();
}

}  // namespace halyard
