// Interpreter: runs decoded code until the outermost function returns, suspends or fails.
#pragma once

#include "vm/run/calls.h"

namespace halyard::vm {

// Continues the top frame at its `ip`. `done`: the results are in stack.results and the stack is empty.
// `failed`: stack.error has the reason and the frames are kept.
CallOutcome interpret(Stack& stack);
// The same for a stack whose stop word is that of other work (Stack::stop).
CallOutcome interpret_kernel(Stack& stack);
// The same, but takes samples of hot functions (vm/compile/heat.h). It counts branches, and stops at samples
// instead of at branches: at most Sampling::branches branches later, or one instruction that may take long.
CallOutcome interpret_sampled(Stack& stack);
// The same as interpret(), and reports every call and return to stack.tracer. A separate instance of the
// interpreter, so that interpret() need not check for a tracer.
CallOutcome interpret_traced(Stack& stack);

}  // namespace halyard::vm
