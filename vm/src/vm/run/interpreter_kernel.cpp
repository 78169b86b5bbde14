// interpret_kernel(): the loop of interpreter.cpp, compiled a third time for kernels, which poll the stop
// word of the work to which they belong.
#define HALYARD_KERNEL_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
