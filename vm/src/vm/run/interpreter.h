// Interpreter: runs decoded code until the outermost function returns, suspends or fails.
#pragma once

#include "vm/run/calls.h"

namespace halyard::vm {

// Continues the top frame at its `ip`. On `done` the results are in stack.results and the stack is empty; on
// `failed` stack.error has the reason and the frames are kept.
CallOutcome interpret(Stack& stack);
// The same for kernels: polls the word stack.stop at every branch and call. interpret() polls a word in the
// stack itself, which saves one load.
CallOutcome interpret_kernel(Stack& stack);
// The same two with samples of hot functions (vm/compile/heat.h). Counting the branches costs a tight loop 7
// % more instructions, so only functions with heat run in them.
CallOutcome interpret_sampled(Stack& stack);
CallOutcome interpret_kernel_sampled(Stack& stack);
// The same as interpret(), and reports every call and return to stack.tracer. A separate instance of the
// interpreter, so that interpret() need not check for a tracer.
CallOutcome interpret_traced(Stack& stack);

}  // namespace halyard::vm
