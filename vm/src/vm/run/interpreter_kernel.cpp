// interpret_kernel(): the loop of interpreter.cpp, compiled a third time for kernels, which somebody else's
// word stops.
#define HALYARD_KERNEL_INTERPRETER
#include "vm/run/interpreter.cpp"  // NOLINT(bugprone-suspicious-include)
