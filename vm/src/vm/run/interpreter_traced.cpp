// interpret_traced(): the loop of interpreter.cpp, compiled a second time with calls traced.
#define HALYARD_TRACED_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
