// Reports a call to the context's tracer. Functions are slices of the thread that runs them, and are open
// only while they run. Native imports are nested slices. When a suspended call is resumed, its new slices are
// on the resuming thread, with a flow from the old ones.
#pragma once

#include <string_view>

#include "vm/run/stack.h"

namespace halyard::vm {

// Records that a frame was pushed and its function begins.
void trace_call(const Stack& stack, const Frame& frame) noexcept;

// The slice of a native import while it runs.
class ImportTrace {
 public:
  ImportTrace(const Stack& stack, const Module& module, std::string_view function) noexcept;
  ImportTrace(const ImportTrace&) = delete;
  ImportTrace& operator=(const ImportTrace&) = delete;
  ~ImportTrace() { tracer_->end(); }

 private:
  Tracer* const tracer_;
};

// The slices of the frames while they run: one for each, the first with the flow from the suspension.
class FramesTrace {
 public:
  explicit FramesTrace(Stack& stack);
  FramesTrace(const FramesTrace&) = delete;
  FramesTrace& operator=(const FramesTrace&) = delete;
  ~FramesTrace();
  void suspend();  // begins the flow to the continuation

 private:
  Stack& stack_;
};

}  // namespace halyard::vm
