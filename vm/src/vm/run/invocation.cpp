// Calls from outside. Arguments are passed to the first frame; results come from the last one.
#include "vm/run/invocation.h"

#include <algorithm>
#include <new>

#include "base/c_boundary.h"
#include "vm/compile/code_store.h"
#include "vm/run/calls.h"
#include "vm/run/interpreter.h"
#include "vm/run/sampling.h"
#include "vm/run/tracing.h"

namespace halyard::vm {

namespace {

[[gnu::cold]] std::unexpected<Status> wrong_count(const Callable& callee, size_t passed) {
  if (callee.convention.has_span)
    return fail(Code::INVALID_ARGUMENT,
                "a function with a variable number of arguments can be called by modules only");
  return fail(Code::INVALID_ARGUMENT, "expected {} arguments, found {}", callee.arguments.size(), passed);
}

}  // namespace

Result<> check_argument_count(const Callable& callee, size_t passed) {
  if (!callee.convention.has_span && passed == callee.arguments.size()) [[likely]]
    return {};
  return wrong_count(callee, passed);
}

Result<> check_result_count(const Callable& callee, size_t room) {
  if (room == callee.convention.results.size()) [[likely]]
    return {};
  return fail(Code::INVALID_ARGUMENT, "'{}' has {} results, but there is room for {}", callee.function->name,
              callee.convention.results.size(), room);
}

namespace {

[[gnu::cold]] std::unexpected<Status> wrong_kind(size_t i, const Variant& argument) {
  if (argument.is_value())
    return fail(Code::FAILED_PRECONDITION, "argument {} is a value; expected a ref", i);
  const Object* object = argument.object();
  return fail(Code::FAILED_PRECONDITION, "argument {} is {}; expected a value", i,
              object ? object->type()->name : "empty");
}

Result<> check_arguments(const Callable& callee, std::span<const Variant> arguments) {
  HALYARD_TRY(check_argument_count(callee, arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool wants_ref = callee.arguments[i] == ValueType::none;
    if (wants_ref == arguments[i].is_value()) return wrong_kind(i, arguments[i]);
  }
  return {};
}

Object* owned(const Variant& argument) {
  retain(argument.object());
  return argument.object();
}
Object* owned(Variant& argument) { return argument.detach(); }

// V: Variant (refs are moved out) or const Variant.
template <typename V>
[[gnu::always_inline]] inline void place_argument(uint32_t* values, Object** refs, uint16_t place,
                                                  ValueType wanted, V& argument) {
  if (place & kRefBit) {
    refs[place & kRegisterMask] = owned(argument);
    return;
  }
  const uint64_t bits =
      argument.type() == wanted ? argument.bits() : coerce(argument.type(), argument.bits(), wanted);
  uint32_t* slot = values + (place & kRegisterMask);
  if (place & kWideBit) {
    store_pair(slot, bits);
  } else {
    *slot = static_cast<uint32_t>(bits);
  }
}

// Assigns registers to the arguments or results of a native function: pairs at even slots, each bank counted
// from its current end.
void assign_places(std::span<const ConventionItem> items, uint32_t& values, uint32_t& refs,
                   std::vector<uint16_t>& places) {
  places.clear();
  for (const ConventionItem& item : items) {
    if (item.type == 'r') {
      places.push_back(static_cast<uint16_t>(kRefBit | refs++));
    } else if (is_wide(item.type)) {
      values = (values + 1) & ~1u;
      places.push_back(static_cast<uint16_t>(values));
      values += 2;
    } else {
      places.push_back(static_cast<uint16_t>(values++));
    }
  }
}

template <typename V>
Result<> set_up_bytecode(Stack& stack, const Callable& callee, std::span<V> arguments) {
  const FunctionCode* code = HALYARD_TRY(callee.instance->store->code(callee.function->function));
  Frame* frame = stack.push(code, callee.instance, nullptr);
  if (!frame) return std::unexpected(std::move(stack.error));
  uint32_t* const values = frame->values();
  Object** const refs = frame->refs();
  for (size_t i = 0; i < arguments.size(); ++i)
    place_argument(values, refs, code->arguments[i], callee.arguments[i], arguments[i]);
  stack.ip = code->words.data();
  return {};
}

template <typename V>
Result<> set_up_native(Stack& stack, const Callable& callee, std::span<V> arguments) {
  uint32_t values = 0;
  uint32_t refs = 0;
  assign_places(callee.convention.arguments, values, refs, stack.native_arguments);
  assign_places(callee.convention.results, values, refs, stack.native_results);
  if (values > kRegisterMask || refs > kRegisterMask) {
    return fail(Code::INVALID_ARGUMENT, "the signature '{}' has too many values",
                callee.function->convention);
  }
  FunctionCode& code = stack.native_code;
  code.value_slots = values;
  code.ref_slots = refs;
  code.refs_offset = bank_bytes(values, sizeof(uint32_t));
  code.frame_bytes =
      static_cast<uint32_t>(sizeof(Frame)) + code.refs_offset + bank_bytes(refs, sizeof(Object*));
  Frame* frame = stack.push(&code, callee.instance, nullptr);
  if (!frame) return std::unexpected(std::move(stack.error));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const char type = callee.convention.arguments[i].type;
    const uint16_t place = stack.native_arguments[i] | (is_wide(type) ? kWideBit : 0);
    place_argument(frame->values(), frame->refs(), place, callee.arguments[i], arguments[i]);
  }
  const auto& module = static_cast<const NativeModule&>(*callee.instance->module);
  stack.native = &module.native_export(callee.function->function);
  return {};
}

}  // namespace

Invocation::Invocation(Ref<Context> context)
    : context_(std::move(context)), stack_(std::make_unique<Stack>()), wait_(make<Wait>()) {
  stack_->invocation = this;
  stack_->tracer = context_->tracer();
  stack_->limits = context_->limits();
  stack_->spare_blocks = context_->spare_blocks();
  stack_->charge = Charge(stack_->limits.memory);
}

Invocation::~Invocation() {
  wait_->set_hook({});
  if (stack_->top) stop_work(Code::CANCELLED);
  end();
}

namespace {

// Reserves the context during a call, if it allows only one.
class Entered {
 public:
  static Result<Entered> enter(Context& context, const Export& function) {
    if (context.limits().concurrent_calls) return Entered(nullptr);
    HALYARD_TRY(context.enter(function));
    return Entered(&context);
  }
  Entered(Entered&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  ~Entered() {
    if (context_) context_->leave();
  }

 private:
  explicit Entered(Context* context) : context_(context) {}
  Context* context_;
};

}  // namespace

template <typename V>
Result<> Invocation::call_with(const Callable& callee, std::span<V> arguments, std::span<Variant> results) {
  HALYARD_TRY(check_result_count(callee, results.size()));
  const Entered entered = HALYARD_TRY(Entered::enter(*context_, *callee.function));
  blocks_ = true;
  Result<Outcome> begun = begin_with(callee, arguments);
  while (begun && *begun != Outcome::done) {
    if (*begun == Outcome::waiting) {
      const TraceScope waiting(stack_->tracer, TraceCategory::wait, "waiting");
      wait_->block(wait_deadline_);
    }
    begun = continue_call();
  }
  blocks_ = false;
  if (!begun) return std::unexpected(std::move(begun).error());
  take_results(results);
  return {};
}

Result<> Invocation::call(const Callable& callee, std::span<const Variant> arguments,
                          std::span<Variant> results) {
  return call_with(callee, arguments, results);
}

Result<> Invocation::call_moving(const Callable& callee, std::span<Variant> arguments,
                                 std::span<Variant> results) {
  return call_with(callee, arguments, results);
}

Result<Outcome> Invocation::begin(const Callable& callee, std::span<const Variant> arguments) {
  const Entered entered = HALYARD_TRY(Entered::enter(*context_, *callee.function));
  return begin_with(callee, arguments);
}

template <typename V>
Result<Outcome> Invocation::begin_with(const Callable& callee, std::span<V> arguments) {
  Stack& stack = *stack_;
  if (stack.top) {
    return fail(Code::FAILED_PRECONDITION,
                "the invocation is still in the call of '{}'; resume or cancel it first", stack.callee->name);
  }
  stack.callee = callee.function;
  stack.native = nullptr;
  stack.resumed = false;
  if (!std::exchange(is_armed_, false)) stack.interrupted.store(0, std::memory_order_relaxed);
  stack.results.clear();
  results_ = Results::none;
  stack.result_types = callee.results;
  Result<> ready = check_arguments(callee, arguments);
  if (ready && stack.interrupted.load(std::memory_order_relaxed) != 0) [[unlikely]]
    ready = to_result(interruption(stack));
  const bool begins = ready.has_value();
  if (begins) {
    try {
      begin_time_limit();  // the limit includes the time to compile the function
      ready = callee.instance->bytecode ? set_up_bytecode(stack, callee, arguments)
                                        : set_up_native(stack, callee, arguments);
    } catch (const std::exception&) {  // out of memory or threads
      ready = to_result(caught_exception());
    }
    if (ready && stack.interrupted.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ready = to_result(interruption(stack));
  }
  if (!ready) {
    if (begins) end();
    stack.error = std::move(ready).error();
    return std::unexpected(unwind_error(stack));
  }
  return go_on();
}

Result<Outcome> Invocation::resume() {
  if (!stack_->top) return fail(Code::FAILED_PRECONDITION, "no call is suspended");
  const Entered entered = HALYARD_TRY(Entered::enter(*context_, *stack_->callee));
  return continue_call();
}

bool Invocation::still_waits() const {
  return wait_->waiting() && (!wait_deadline_ || Clock::now() < *wait_deadline_);
}

Result<Outcome> Invocation::continue_call() {
  if (is_running_)
    return fail(Code::FAILED_PRECONDITION,
                "the call of '{}' runs and is not suspended, so it cannot be resumed from within",
                stack_->callee->name);
  if (wait_->waiting()) {
    if (still_waits())
      return fail(Code::FAILED_PRECONDITION,
                  "the call still waits; resume it when its ready hook is called, or at its deadline");
    wait_->abandon();
  }
  if (stack_->interrupted.load() != 0) {
    stack_->error = interruption(*stack_);
    end();
    return std::unexpected(unwind_error(*stack_));
  }
  return go_on();
}

void Invocation::set_traced(bool is_traced) {
  if (stack_->top || !context_->tracer()) return;
  trace_choice_ = is_traced ? TraceChoice::on : TraceChoice::off;
  stack_->tracer = is_traced ? context_->tracer() : nullptr;
}

namespace {

CallOutcome run_traced(Stack& stack) {
  if (stack.native) {
    const ImportTrace slice(stack, *stack.top->instance->module, stack.callee->name);
    return call_native_entry(stack);
  }
  FramesTrace slices(stack);
  const CallOutcome outcome = interpret_traced(stack);
  if (outcome == CallOutcome::suspended) slices.suspend();
  return outcome;
}

// If the call must stop, its first branch is a sample. A call that was stopped at a sample has left 0.
void begin_sampling(Stack& stack) {
  const uint32_t most = must_stop(stack) ? 1 : sampling_of(*stack.top).branches;
  stack.branches_until_sample = std::clamp(stack.branches_until_sample, uint32_t{1}, most);
}

}  // namespace

Result<Outcome> Invocation::go_on() {
  Stack& stack = *stack_;
  const TraceChoiceScope choice(trace_choice_);
  CallOutcome outcome = CallOutcome::failed;
  is_running_ = true;
  try {
    if (stack.tracer) [[unlikely]] {
      outcome = run_traced(stack);
    } else {
      const bool sampled = !stack.native && stack.top->code->heat != nullptr;
      if (sampled) begin_sampling(stack);
      outcome = stack.native ? call_native_entry(stack)
                : sampled    ? interpret_sampled(stack)
                             : stack.run_plain(stack);
    }
  } catch (const std::bad_alloc&) {
    stack.error = out_of_memory();
  }
  if (outcome == CallOutcome::suspended) {
    is_running_ = false;  // before the hook can be called, because another thread may then resume the call
    return wait_->arm() ? Outcome::waiting : Outcome::yielded;
  }
  end();
  is_running_ = false;
  if (outcome == CallOutcome::done) {
    results_ = Results::ready;
    return Outcome::done;
  }
  return std::unexpected(unwind_error(stack));
}

Wakeup Invocation::begin_wait(const Deadline& deadline) {
  wait_deadline_ = deadline;
  const uint64_t number = wait_->begin();
  // An interruption before this wait began could not end the wait.
  if (stack_->interrupted.load() != 0) wait_->end();
  return {wait_, number};
}

Result<> Invocation::block_on_wait() {
  const TraceScope waiting(stack_->tracer, TraceCategory::wait, "waiting");
  wait_->block(wait_deadline_);
  wait_->abandon();
  if (stack_->interrupted.load() == 0) return {};
  return to_result(interruption(*stack_));
}

void Invocation::interrupt(Code code) {
  stack_->interrupted.store(static_cast<uint32_t>(code));
  stop_work(code);
  wait_->end();
}

void Invocation::arm() {
  if (stack_->top) return;
  stack_->interrupted.store(0);
  is_armed_ = true;
}

void Invocation::stop_work(Code code) {
  const std::lock_guard lock(scope_mutex_);
  if (scope_) scope_->stop(code);
}

// Returns the scope for new work of this call. Creates a new scope if the old one was stopped, because work
// of an earlier call may still poll the old one. If calls have a time limit, each call has its own scope,
// because its work may outlive the call, but not its limit.
WorkScope& Invocation::new_scope() {
  if (scope_ && is_scope_of_this_call_ && !scope_->is_stopped()) return *scope_;
  const auto code = [this] { return static_cast<Code>(stack_->interrupted.load()); };
  if (scope_ && code() != Code::OK) return *scope_;  // this call was stopped
  auto made = make<WorkScope>();
  if (const Clock::time_point end = std::min(limit_, own_deadline_); end != Clock::time_point::max())
    made->stop_at(context_->loop(), end);
  is_scope_of_this_call_ = true;
  const std::lock_guard lock(scope_mutex_);
  std::swap(scope_, made);
  if (code() != Code::OK) scope_->stop(code());  // the interruption has stopped the old scope only
  return *scope_;
}

void Invocation::set_sharing(const halyard_jit_sharing_t* sharing) { stack_->sharing = sharing; }
uint64_t Invocation::take_checked_loops() { return std::exchange(stack_->checked_loops, 0); }

void Invocation::set_stop(const uint32_t* stop) {
  stack_->stop = stop ? stop : stack_->own_stop();
  stack_->run_plain = stop ? interpret_kernel : interpret;
}

void Invocation::begin_time_limit() {
  const std::chrono::nanoseconds limit = stack_->limits.time;
  if (limit.count() != 0) limit_ = Clock::now() + limit;
  if (limit.count() != 0 || own_deadline_ != Clock::time_point::max()) set_time_limit();
}

void Invocation::set_time_limit() {
  is_scope_of_this_call_ = false;  // work of this call must not stop at the limit of an earlier call
  const Clock::time_point end = std::min(limit_, own_deadline_);
  if (end == Clock::time_point::max()) {
    if (time_limit_) time_limit_->clear();
    return;
  }
  if (!time_limit_) time_limit_.emplace(context_->loop(), [this] { interrupt(Code::DEADLINE_EXCEEDED); });
  time_limit_->set(end);
}

Result<> Invocation::set_deadline(const Deadline& deadline) {
  if (deadline && !context_->loop())
    return fail(Code::FAILED_PRECONDITION,
                "a deadline needs an event loop, but the context was created without an instance; pass one");
  own_deadline_ = deadline.value_or(Clock::time_point::max());
  if (!stack_->top) return {};
  try {
    set_time_limit();
  } catch (const std::exception&) {  // out of memory or threads
    return to_result(caught_exception());
  }
  return {};
}

// Resets everything that a call leaves besides frames: its time limit, its wait, and state kept between
// attempts.
void Invocation::end() {
  if (time_limit_) time_limit_->clear();
  if (own_deadline_ != Clock::time_point::max()) {
    own_deadline_ = Clock::time_point::max();
    // The scope stops at this call's deadline, so the next call gets another one.
    is_scope_of_this_call_ = false;
  }
  wait_->abandon();
  wait_state_ = {};
  kept_rooms_.clear();
}

const uint32_t* Invocation::stop_word() const { return stack_->own_stop(); }

Status Invocation::stopped() const { return interruption(*stack_); }

Result<Outcome> Invocation::begin_inner(const Callable& callee, std::span<const Variant> arguments) {
  return begin_with(callee, arguments);
}

std::string Invocation::place() const {
  if (native_place_) return native_place_;
  const Stack& stack = *stack_;
  return stack.native || !stack.top ? "" : place_text(*stack.top->code, stack.ip);
}

bool Invocation::is_suspended() const { return stack_->top != nullptr; }

size_t Invocation::result_count() const { return stack_->results.size(); }

void Invocation::take_results(std::span<Variant> results) {
  const size_t count = std::min(results.size(), stack_->results.size());
  std::move(stack_->results.begin(), stack_->results.begin() + static_cast<ptrdiff_t>(count),
            results.begin());
  stack_->results.clear();
  results_ = Results::taken;
}

void Invocation::drop() {
  if (stack_->top) stop_work(Code::CANCELLED);
  end();
  stack_->unwind();
  stack_->results.clear();
  results_ = Results::none;
}

}  // namespace halyard::vm
