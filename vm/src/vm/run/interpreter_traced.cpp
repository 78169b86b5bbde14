// interpret_traced(): the loop of interpreter.cpp, compiled with tracing of calls.
#define HALYARD_TRACED_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
