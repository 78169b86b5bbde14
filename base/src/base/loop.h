// Loop: the event loop of an instance, a Boost.Asio io_context and the thread that runs it. It serves timers,
// descriptors and steps that must not run inside a driver's callback; warm calls do not use it. Thread-safe.
//
// The loop and its thread are created on first use. If the embedder runs the loop, no thread is started.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

#include "base/object.h"
#include "base/step.h"

namespace boost::asio {
class io_context;
}

namespace halyard {

class Loop final : public ObjectOf<Loop> {
 public:
  using Clock = std::chrono::steady_clock;
  static const ObjectType kType;

  static Ref<Loop> create();           // run by a thread of its own, which blocks every signal
  static Ref<Loop> run_by_embedder();  // the embedder calls run()
  // The embedder's io_context, which outlives the loop and all steps posted to it.
  static Ref<Loop> on(boost::asio::io_context& context);

  // Runs `step` soon, on the thread that runs the loop. If no thread can be started (no memory, no thread),
  // the next drain() runs it.
  void post(Step& step) noexcept;
  // Runs the posted steps that have not begun on this thread, and waits for those that have, and for steps
  // that they post. Called from a step it does not wait, since it might wait for itself.
  void drain();

  // For loops that the embedder runs: runs ready handlers, waiting for more until the deadline; returns how
  // many ran. Several threads may call it concurrently.
  size_t run(Clock::time_point deadline);
  // Makes run() return early, on all threads that are in it.
  void interrupt_run();
  bool is_run_by_embedder() const;

  // For timers and descriptors. Throws std::system_error if the system has no descriptor or thread left.
  boost::asio::io_context& context();

  struct State;
  explicit Loop(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Runs the posted steps; the thread ends.
  ~Loop();

 private:
  std::shared_ptr<State> state_;
};

// Calls a function at a time that can be changed often. Setting and clearing it takes one lock that is almost
// always free: the loop's timer keeps running and checks the time again when it expires, so a series of calls
// with time limits does not wake the loop's thread for each call.
class Alarm {
 public:
  // `ring` runs under the alarm's lock, on the loop's thread: it must not touch the alarm.
  Alarm(Ref<Loop> loop, std::function<void()> ring);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();  // `ring` is not running afterwards, and will not

  // Throws as Loop::context() does, and std::bad_alloc; then it is not set.
  void set(Loop::Clock::time_point time);
  void clear();

 private:
  struct State;
  Ref<Loop> loop_;
  std::shared_ptr<State> state_;
};

}  // namespace halyard
