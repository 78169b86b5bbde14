// Invocation: one call from outside into a context, with its own stack. Reusable; a warm invocation does not
// allocate. One thread at a time. Specified by verifier-and-execution.md, sections 4 to 7, and
// calling-convention.md, sections 3 and 7.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/trace_choice.h"
#include "base/wait.h"
#include "base/work_scope.h"
#include "vm/object/variant.h"
#include "vm/run/context.h"
#include "vm/run/kept_rooms.h"

struct halyard_jit_sharing_t;

namespace halyard::vm {

struct Stack;  // vm/run/stack.h

using Clock = Wait::Clock;
using Deadline = Wait::Deadline;

enum class Outcome : uint8_t {
  done,
  yielded,  // can be resumed at any time
  waiting,  // can be resumed after the ready hook was called, or at the deadline
};

// INVALID_ARGUMENT: the number of arguments, or of results for which there is room, differs from the
// function's. For callers that check before they allocate.
Result<> check_argument_count(const Callable& callee, size_t passed);
Result<> check_result_count(const Callable& callee, size_t room);

class Invocation {
 public:
  explicit Invocation(Ref<Context> context);
  ~Invocation();
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Calls the function and runs it to its end; a yield without a wait continues at once. Arguments are
  // borrowed, and coerced to the types of the convention. `results` must have the convention's size, and is
  // written only on success. INVALID_ARGUMENT: wrong counts ("expected N arguments, found M").
  Result<> call(const Callable& callee, std::span<const Variant> arguments, std::span<Variant> results);
  // The same, but moves the refs out of the arguments.
  Result<> call_moving(const Callable& callee, std::span<Variant> arguments, std::span<Variant> results);

  // The same in steps: any thread may continue the call with resume() until it is done.
  Result<Outcome> begin(const Callable& callee, std::span<const Variant> arguments);
  // FAILED_PRECONDITION: nothing is suspended (the call may be running), or the wait is not over.
  Result<Outcome> resume();
  bool is_suspended() const;
  enum class Results : uint8_t { none, ready, taken };  // of the last call
  Results results() const { return results_; }
  size_t result_count() const;                    // after `done`
  void take_results(std::span<Variant> results);  // after `done`, once
  bool still_waits() const;                       // of a suspended call: whether resume() would fail
  void drop();  // drops a suspended call: releases its frames and cancels its work on devices

  const Deadline& wait_deadline() const { return wait_deadline_; }  // of the last wait
  // The hook is called once each time that begin() or resume() has returned `waiting`, unless the deadline
  // comes first.
  void set_ready_hook(Wait::Hook hook) { wait_->set_hook(hook); }

  // Fails the call with CANCELLED or DEADLINE_EXCEEDED, at its next branch or call or in its wait. Also stops
  // work on devices that this call, or earlier calls of this invocation, have submitted. No effect if there
  // is neither. Native functions are not interrupted. Thread-safe.
  void interrupt(Code code);
  // From now on interrupt() also affects the next call, even before it begins. For the thread that begins the
  // call.
  void arm();

  // Fails the suspended call, or else the next call, with DEADLINE_EXCEEDED at this time, unless the
  // context's limit comes first; nullopt: only the context's limit. Reset at the end of the call.
  // FAILED_PRECONDITION: the context has no event loop. RESOURCE_EXHAUSTED.
  Result<> set_deadline(const Deadline& deadline);

  // Selects whether the context's tracer records the next calls. Not during a call.
  void set_traced(bool is_traced);

  // The scope of the work that the call submits. Only for the thread that runs the invocation.
  WorkScope& work_scope() {
    return scope_ && is_scope_of_this_call_ && !scope_->is_stopped() ? *scope_ : new_scope();
  }
  // For kernels, whose work another call has submitted: sets the stop word of that work; null: none. Takes
  // effect with the next call. The word must outlive the calls that use it.
  void set_stop(const uint32_t* stop);
  // For kernels: threads that may run pieces of compiled loops; null: none. Takes effect with the next call.
  // The object must outlive the calls that use it.
  void set_sharing(const halyard_jit_sharing_t* sharing);
  // The number of loop nests of compiled code that ran with all of their checks since the last call of this.
  uint64_t take_checked_loops();

  // Whether the call was made with call(), which blocks when the program waits.
  bool blocks() const { return blocks_; }
  // For native functions that wait (CallContext): begins the wait of their deferral.
  Wakeup begin_wait(const Deadline& deadline);
  // Blocks until the wait or its deadline is over. CANCELLED, DEADLINE_EXCEEDED: interrupted.
  Result<> block_on_wait();
  void abandon_wait() { wait_->abandon(); }  // for a function that does not defer after all
  // State that a native function keeps between its attempts. Released when the function returns, fails or is
  // dropped.
  Ref<Object>& wait_state() { return wait_state_; }
  // What calls of native functions keep between their attempts; dropped with the call.
  KeptRooms& kept_rooms() { return kept_rooms_; }
  // The word that is not 0 when the call should end, and the failure of such a call.
  const uint32_t* stop_word() const;
  Status stopped() const;
  // For native functions that call a function of their own context in another invocation: begin() and
  // resume(), without reserving the context, which the outer call has reserved.
  Result<Outcome> begin_inner(const Callable& callee, std::span<const Variant> arguments);
  Result<Outcome> resume_inner() { return continue_call(); }

  // For native functions: the location of the calling bytecode, for messages; empty if there is none.
  std::string place() const;
  // Sets that location while a native module calls an import; null: unknown.
  class PlaceScope {
   public:
    PlaceScope(Invocation& invocation, const char* place)
        : invocation_(invocation), outer_(std::exchange(invocation.native_place_, place)) {}
    PlaceScope(const PlaceScope&) = delete;
    PlaceScope& operator=(const PlaceScope&) = delete;
    ~PlaceScope() { invocation_.native_place_ = outer_; }

   private:
    Invocation& invocation_;
    const char* outer_;
  };

  Context& context() const { return *context_; }

 private:
  // V: Variant (refs are moved out) or const Variant.
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
  Result<Outcome> continue_call();  // continues the suspended call

  Ref<Context> context_;
  std::unique_ptr<Stack> stack_;
  TraceChoice trace_choice_ = TraceChoice::unset;
  Ref<Wait> wait_;  // reused for each wait
  Deadline wait_deadline_;
  Ref<Object> wait_state_;
  KeptRooms kept_rooms_;
  std::optional<Alarm> time_limit_;  // created by the first call with a time limit
  std::mutex scope_mutex_;           // guards replacing and stopping the scope
  Ref<WorkScope> scope_;             // null until a call submits work
  // The time limit of the call: the earlier one of the context's limit and set_deadline().
  Clock::time_point limit_ = Clock::time_point::max();
  Clock::time_point own_deadline_ = Clock::time_point::max();
  bool is_scope_of_this_call_ = false;
  bool blocks_ = false;
  bool is_running_ = false;  // a thread is in go_on()
  Results results_ = Results::none;
  const char* native_place_ = nullptr;  // PlaceScope
  bool is_armed_ = false;               // the next call starts with a pending interruption
};

}  // namespace halyard::vm
