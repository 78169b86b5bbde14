// Formats names of functions, and records slices for the parts of a call.
#include "vm/run/tracing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <new>
#include <vector>

namespace halyard::vm {

namespace {

// "module.function", without allocation.
class Name {
 public:
  Name(std::string_view module, std::string_view function) {
    add(module);
    add(".");
    add(function);
  }
  void add(std::string_view part) {
    const size_t count = std::min(part.size(), text_.size() - size_);
    if (count != 0) std::memcpy(text_.data() + size_, part.data(), count);
    size_ += count;
  }
  std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 255> text_;  // the maximum that the tracer accepts
  size_t size_ = 0;
};

void begin_function(Tracer& tracer, const Frame& frame, std::span<const uint64_t> flows = {}) noexcept {
  const BytecodeModule& module = *frame.code->module;
  const std::string_view function = module.function_name(frame.code->function);
  Name name(module.name(), function);
  if (function.empty()) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), frame.code->function).ptr;
    name.add("@");
    name.add({digits.data(), static_cast<size_t>(end - digits.data())});
  }
  tracer.begin(TraceCategory::machine, name.text(), flows);
}

// One slice for each frame; the first one has the flow.
void open_frames(Stack& stack) {
  std::vector<const Frame*> frames;
  for (Frame* frame = stack.top; frame; frame = frame->caller()) frames.push_back(frame);
  const uint64_t flow = std::exchange(stack.trace_flow, 0);
  std::span<const uint64_t> flows(&flow, flow != 0);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    begin_function(*stack.tracer, **frame, flows);
    flows = {};
  }
}

void close_frames(const Stack& stack) noexcept {
  for (Frame* frame = stack.top; frame; frame = frame->caller()) stack.tracer->end();
}

CallOutcome run_native(Stack& stack) {
  const Name name(stack.top->instance->module->name(), stack.callee->name);
  const TraceScope scope(stack.tracer, TraceCategory::import, name.text());
  return call_native_entry(stack);
}

CallOutcome run_bytecode(Stack& stack) {
  open_frames(stack);
  CallOutcome outcome = CallOutcome::failed;
  try {
    outcome = interpret_traced(stack);
  } catch (const std::bad_alloc&) {
    close_frames(stack);
    throw;
  }
  if (outcome == CallOutcome::suspended) {
    stack.trace_flow = stack.tracer->new_flow();
    stack.tracer->instant(TraceCategory::wait, "suspended", {&stack.trace_flow, 1});
  }
  close_frames(stack);
  return outcome;
}

}  // namespace

void trace_call(const Stack& stack, const Frame& frame) noexcept { begin_function(*stack.tracer, frame); }

ImportTrace::ImportTrace(const Stack& stack, const Target& target) noexcept : tracer_(stack.tracer) {
  const Module& module = *target.instance->module;
  tracer_->begin(TraceCategory::import, Name(module.name(), module.exports()[target.function].name).text());
}

CallOutcome run_traced(Stack& stack) { return stack.native ? run_native(stack) : run_bytecode(stack); }

}  // namespace halyard::vm
