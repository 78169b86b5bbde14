// Formats names of functions, and records slices for the parts of a call.
#include "vm/run/tracing.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
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

}  // namespace

void trace_call(const Stack& stack, const Frame& frame) noexcept { begin_function(*stack.tracer, frame); }

ImportTrace::ImportTrace(const Stack& stack, const Module& module, std::string_view function) noexcept
    : tracer_(stack.tracer) {
  tracer_->begin(TraceCategory::import, Name(module.name(), function).text());
}

FramesTrace::FramesTrace(Stack& stack) : stack_(stack) {
  std::vector<const Frame*> frames;
  for (Frame* frame = stack.top; frame; frame = frame->caller()) frames.push_back(frame);
  const uint64_t flow = std::exchange(stack.trace_flow, 0);
  std::span<const uint64_t> flows(&flow, flow != 0);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    begin_function(*stack.tracer, **frame, flows);
    flows = {};
  }
}

FramesTrace::~FramesTrace() {
  for (Frame* frame = stack_.top; frame; frame = frame->caller()) stack_.tracer->end();
}

void FramesTrace::suspend() {
  stack_.trace_flow = stack_.tracer->new_flow();
  stack_.tracer->instant(TraceCategory::wait, "suspended", {&stack_.trace_flow, 1});
}

}  // namespace halyard::vm
