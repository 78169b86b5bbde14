// Loop: the event loop of an instance, Boost.Asio's io_context and who runs it. Timers, descriptors and what
// must not run inside a driver's callback meet here; nothing on the path of a warm call does. Thread-safe.
//
// A loop is made when it is first needed and so is its thread; an embedder can run it instead, and then no
// thread is started.
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
  // The embedder's own, which outlives the loop and all that was posted to it.
  static Ref<Loop> on(boost::asio::io_context& context);

  // Runs `step` soon, on the thread that runs the loop. Where none can be started (no memory, no thread) it
  // is run by the next drain().
  void post(Step& step) noexcept;
  // Runs here what was posted and has not begun, and waits for what has, and for what that posts; from a step
  // it waits for nothing, since that might be itself.
  void drain();

  // For loops that the embedder runs: runs what is due, waiting for it until the deadline; how many handlers
  // ran. Several threads may do so at once.
  size_t run(Clock::time_point deadline);
  // Makes run() return early, on all threads that are in it.
  void interrupt_run();
  bool is_run_by_embedder() const;

  // For timers and descriptors. Throws std::system_error where the system has no descriptor or thread left.
  boost::asio::io_context& context();

  struct State;
  explicit Loop(std::shared_ptr<State> state) : state_(std::move(state)) {}
  // Runs what was posted; the thread ends.
  ~Loop();

 private:
  std::shared_ptr<State> state_;
};

// Calls a function at a time that may be moved again and again. Setting and clearing it costs a lock that is
// almost always free: the loop's timer stays as it is and looks at the time again when it expires, so a
// series of calls with a time limit each does not wake the loop's thread for each of them.
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
