// Loop: the event loop of an instance, a Boost.Asio io_context and the thread that runs it. It serves timers,
// descriptors, and steps that must not run inside a driver's callback. Warm calls do not use it. Thread-safe.
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

  static Ref<Loop> create();           // starts its own thread, which blocks all signals
  static Ref<Loop> run_by_embedder();  // the embedder calls run()
  // Uses the embedder's io_context, which must outlive the loop and all steps posted to it.
  static Ref<Loop> on(boost::asio::io_context& context);

  // Runs `step` soon, on the thread that runs the loop. If no thread can be started, the next drain() runs
  // it.
  void post(Step& step) noexcept;
  // Runs the posted steps that have not begun on this thread, and waits for the running ones and for the
  // steps that they post. If called from a step it does not wait, because it might wait for itself.
  void drain();

  // For loops that the embedder runs: runs ready handlers, and waits for more until the deadline. Returns the
  // number of handlers that ran. Several threads may call it concurrently.
  size_t run(Clock::time_point deadline);
  // Makes all running run() calls return early.
  void interrupt_run();
  bool is_run_by_embedder() const;

  // For timers and descriptors. Throws std::system_error if the system is out of descriptors or threads.
  boost::asio::io_context& context();

  struct State;
  explicit Loop(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Runs the posted steps and ends the thread.
  ~Loop();

 private:
  std::shared_ptr<State> state_;
};

// Calls a function at a time that can be changed often. Setting and clearing the time takes one lock, which
// is almost always free. The loop's timer keeps running and compares the time when it expires, so a series of
// calls with time limits does not wake the loop's thread for each call.
class Alarm {
 public:
  // `ring` runs under the alarm's lock, on the loop's thread: it must not touch the alarm.
  Alarm(Ref<Loop> loop, std::function<void()> ring);
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();  // `ring` is not running afterwards, and will not run again

  // Throws like Loop::context(), or std::bad_alloc; the time is not set then.
  void set(Loop::Clock::time_point time);
  void clear();

 private:
  struct State;
  Ref<Loop> loop_;
  std::shared_ptr<State> state_;
};

}  // namespace halyard
