// Reports a call to the context's tracer. Functions are slices of the thread that runs them, and are open
// only while they run. Native imports are nested slices. When a suspended call is resumed, its new slices are
// on the resuming thread, with a flow from the old ones.
#pragma once

#include "vm/run/interpreter.h"

namespace halyard::vm {

// Records that a frame was pushed and its function begins.
void trace_call(const Stack& stack, const Frame& frame) noexcept;

// The slice of a native import while it runs.
class ImportTrace {
 public:
  ImportTrace(const Stack& stack, const Target& target) noexcept;
  ImportTrace(const ImportTrace&) = delete;
  ImportTrace& operator=(const ImportTrace&) = delete;
  ~ImportTrace() { tracer_->end(); }

 private:
  Tracer* const tracer_;
};

// Continues the call, like interpret() or call_native_entry().
CallOutcome run_traced(Stack& stack);

}  // namespace halyard::vm
