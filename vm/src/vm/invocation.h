// Invocation: one activity of a context, with a stack of its own. Reusable: a warm one allocates nothing. One
// thread at a time. Specified by verifier-and-execution.md, sections 4 to 7, and calling-convention.md,
// sections 3 and 7.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "vm/context.h"
#include "vm/variant.h"
#include "vm/waker.h"

namespace halyard::vm {

struct Stack;  // vm/stack.h

enum class Outcome : uint8_t { done, suspended };

class Invocation {
 public:
  explicit Invocation(Ref<Context> context);
  ~Invocation();
  Invocation(const Invocation&) = delete;
  Invocation& operator=(const Invocation&) = delete;

  // Calls to the end: a yield without a wait continues at once. Arguments are borrowed and coerced as the
  // convention says; `results` has exactly as many elements as the convention and is written only on success.
  // INVALID_ARGUMENT for wrong counts ("expected N arguments but passed M").
  Result<> call(const Callable& callee, std::span<const Variant> arguments, std::span<Variant> results);

  // The same in steps. After `suspended`, resume() on any thread continues; results are written when it is
  // done.
  Result<Outcome> begin(const Callable& callee, std::span<const Variant> arguments);
  // FAILED_PRECONDITION: nothing is suspended, or it waits for something that has not happened.
  Result<Outcome> resume();
  void take_results(std::span<Variant> results);  // after `done`
  void drop();                                    // a suspended call, releasing its frames

  // Whether the suspended call waits: resume() is of no use before the ready hook has been called, or the
  // deadline has come, where there is one. Otherwise it has only yielded.
  bool waiting() const;
  const Deadline& wait_deadline() const { return wait_deadline_; }
  void set_ready_hook(Waker::Hook hook) { waker_->set_hook(hook); }

  // Any thread: makes the call that is under way fail with CANCELLED or DEADLINE_EXCEEDED at its next branch
  // or call, or out of its wait. Without effect where none is under way. A native function is not
  // interrupted.
  void interrupt(Code code);

  // For native functions that wait (CallContext): begins the wait that their deferral is.
  Wakeup begin_wait(const Deadline& deadline);
  // What such a function keeps between its attempts; released when it is done, fails or is dropped.
  Ref<Object>& wait_state() { return wait_state_; }
  const Deadline& deadline() const { return deadline_; }  // of the call, by the context's time limit

  Context& context() const { return *context_; }

 private:
  void begin_watch();
  void end_watch();
  Result<Outcome> go_on();

  Ref<Context> context_;
  std::unique_ptr<Stack> stack_;
  Ref<Waker> waker_;
  Deadline deadline_;
  Deadline wait_deadline_;
  Ref<Object> wait_state_;
  uint64_t watch_ = 0;
};

}  // namespace halyard::vm
