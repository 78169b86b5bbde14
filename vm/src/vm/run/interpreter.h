// Interpreter: runs decoded code until the outermost function returns, suspends or fails.
#pragma once

#include "vm/run/calls.h"

namespace halyard::vm {

// Goes on with the top frame at its `ip`. On `done` the results are in stack.results and the stack is empty;
// on `failed` stack.error says why and the frames are still there.
CallOutcome interpret(Stack& stack);
// The same, but stack.stop is the word that it looks at, at every branch and call. For kernels: interpret()
// finds what it looks at in the stack itself, one load nearer.
CallOutcome interpret_kernel(Stack& stack);
// The same as interpret(), and tells stack.tracer of every call and return. A program of its own, so that
// interpret() has nothing to ask.
CallOutcome interpret_traced(Stack& stack);

}  // namespace halyard::vm
