// interpret_sampled(): the loop of interpreter.cpp, compiled with a count of branches.
#define HALYARD_SAMPLED_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
