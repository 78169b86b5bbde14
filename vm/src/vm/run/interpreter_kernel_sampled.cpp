// interpret_kernel_sampled(): the loop of interpreter.cpp, compiled for kernels with a count of branches.
#define HALYARD_KERNEL_INTERPRETER
#define HALYARD_SAMPLED_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
