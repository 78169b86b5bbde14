// interpret_kernel(): the loop of interpreter.cpp, compiled a third time for kernels, which poll a word of
// the work that they belong to.
#define HALYARD_KERNEL_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
