// Invocation: one activity of a context, with a stack of its own. Reusable: a warm one allocates nothing. One
// thread at a time. Specified by verifier-and-execution.md, sections 4 to 7, and calling-convention.md,
// sections 3 and 7.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/wait.h"
#include "base/work_scope.h"
#include "vm/object/variant.h"
#include "vm/run/context.h"

namespace halyard::vm {

struct Stack;  // vm/run/stack.h

using Clock = Wait::Clock;
using Deadline = Wait::Deadline;

enum class Outcome : uint8_t {
  done,
  yielded,  // to be resumed whenever it suits
  waiting,  // to be resumed when the ready hook is called, or the deadline has come
};

class Invocation {
 public:
  explicit Invocation(Ref<Context> context);
  ~Invocation();
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Calls to the end: a yield without a wait continues at once. Arguments are borrowed and coerced as the
  // convention says; `results` has exactly as many elements as the convention and is written only on success.
  // INVALID_ARGUMENT for wrong counts ("expected N arguments, found M").
  Result<> call(const Callable& callee, std::span<const Variant> arguments, std::span<Variant> results);
  // The same, but refs are moved out of the arguments.
  Result<> call_moving(const Callable& callee, std::span<Variant> arguments, std::span<Variant> results);

  // The same in steps. As long as it is not done, resume() on any thread continues.
  Result<Outcome> begin(const Callable& callee, std::span<const Variant> arguments);
  // FAILED_PRECONDITION: nothing is suspended, or it waits for something that has not happened.
  Result<Outcome> resume();
  size_t result_count() const;                    // after `done`
  void take_results(std::span<Variant> results);  // likewise, once
  void drop();  // a suspended call, releasing its frames; its work on devices is cancelled

  const Deadline& wait_deadline() const { return wait_deadline_; }  // of the last wait
  // Called once for each time that begin() or resume() gave `waiting`, unless the deadline comes first.
  void set_ready_hook(Wait::Hook hook) { wait_->set_hook(hook); }

  // Any thread: makes the call that is under way fail with CANCELLED or DEADLINE_EXCEEDED at its next branch
  // or call, or out of its wait, and stops what it has submitted to devices, as well as what earlier calls of
  // this invocation have left under way there. Without effect where nothing is. A native function is not
  // interrupted.
  void interrupt(Code code);

  // Ends the next call, or the one that is suspended, with DEADLINE_EXCEEDED at that time, unless the
  // context's limit comes first; none: at that limit only. Forgotten at the end of the call.
  // FAILED_PRECONDITION: the context has no event loop; RESOURCE_EXHAUSTED.
  Result<> set_deadline(const Deadline& deadline);

  // The scope of the work that the call submits. The invocation's thread.
  WorkScope& work_scope() {
    return scope_ && is_scope_of_this_call_ && !scope_->is_stopped() ? *scope_ : new_scope();
  }
  // For kernels, whose work somebody else submitted: the word that stops it, null for none, from the next
  // call on. It lives as long as such calls do.
  void set_stop(const uint32_t* stop);

  // Whether the call is one to the end, call(), which blocks where the program waits.
  bool blocks() const { return blocks_; }
  // For native functions that wait (CallContext): begins the wait that their deferral is.
  Wakeup begin_wait(const Deadline& deadline);
  // Blocks until the wait has ended or its deadline has come. CANCELLED, DEADLINE_EXCEEDED: interrupted.
  Result<> sit_out_wait();
  void abandon_wait() { wait_->abandon(); }  // the function does not defer after all
  // What such a function keeps between its attempts; released when it is done, fails or is dropped.
  Ref<Object>& wait_state() { return wait_state_; }

  // For native functions: where the bytecode is that calls them, for messages. Empty where none does.
  std::string place() const;

  Context& context() const { return *context_; }

 private:
  // V: Variant, to be moved from, or const Variant.
  template <typename V>
  Result<Outcome> begin_with(const Callable& callee, std::span<V> arguments);
  template <typename V>
  Result<> call_with(const Callable& callee, std::span<V> arguments, std::span<Variant> results);
  void begin_time_limit();
  void set_time_limit();
  WorkScope& new_scope();
  void stop_work(Code code);
  void end();
  Result<Outcome> go_on();
  Result<Outcome> continue_call();  // the suspended one

  Ref<Context> context_;
  std::unique_ptr<Stack> stack_;
  Ref<Wait> wait_;  // begun anew for each
  Deadline wait_deadline_;
  Ref<Object> wait_state_;
  std::optional<Alarm> time_limit_;  // made by the first call that has one
  std::mutex scope_mutex_;           // who replaces the scope and who stops it
  Ref<WorkScope> scope_;             // null until a call submits work
  // When the call ends at the latest: by the context's limit, by set_deadline(), the earlier of both.
  Clock::time_point limit_ = Clock::time_point::max();
  Clock::time_point own_deadline_ = Clock::time_point::max();
  bool is_scope_of_this_call_ = false;
  bool blocks_ = false;
};

}  // namespace halyard::vm
