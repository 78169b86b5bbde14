// Replaces the other forms of the interpreter in small builds (HALYARD_SMALL): nothing is compiled there, and
// traces contain no calls of functions.
#include "vm/run/interpreter.h"

namespace halyard::vm {

CallOutcome interpret_kernel(Stack& stack) { return interpret(stack); }
CallOutcome interpret_sampled(Stack& stack) { return interpret(stack); }
CallOutcome interpret_traced(Stack& stack) { return interpret(stack); }

}  // namespace halyard::vm
