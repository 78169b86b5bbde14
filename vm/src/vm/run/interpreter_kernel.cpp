// interpret_kernel(): the loop of interpreter.cpp, compiled for stop words of other work.
#define HALYARD_KERNEL_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
