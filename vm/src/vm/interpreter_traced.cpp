// interpret_traced(): the loop of interpreter.cpp, compiled a second time with calls traced.
#define HALYARD_TRACED_INTERPRETER
#include "vm/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
