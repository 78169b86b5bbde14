// Reports a call to the context's tracer: functions are slices of the thread that runs them, open only while
// they run; imports that C++ provides are nested slices. When a suspended call is resumed, its slices are on
// the resuming thread, with a flow from the old ones.
#pragma once

#include "vm/run/interpreter.h"

namespace halyard::vm {

// A frame was pushed, and its function begins.
void trace_call(const Stack& stack, const Frame& frame) noexcept;

// Open while a native import runs.
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
