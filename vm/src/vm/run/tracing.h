// What a call tells the context's tracer: functions as slices of the thread that runs them, open only while
// it does; imports that C++ provides as slices within. A call that was suspended goes on in slices of the
// thread that resumes it, with a flow from there.
#pragma once

#include "vm/run/interpreter.h"

namespace halyard::vm {

// A frame was made, and its function begins.
void trace_call(const Stack& stack, const Frame& frame) noexcept;

// For as long as a native import runs.
class ImportTrace {
 public:
  ImportTrace(const Stack& stack, const Target& target) noexcept;
  ImportTrace(const ImportTrace&) = delete;
  ImportTrace& operator=(const ImportTrace&) = delete;
  ~ImportTrace() { tracer_->end(); }

 private:
  Tracer* const tracer_;
};

// Goes on with the call, like interpret() or call_native_entry().
CallOutcome run_traced(Stack& stack);

}  // namespace halyard::vm
