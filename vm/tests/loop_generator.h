// Generates functions that resemble kernels: nests of loops over buffers, with indices that are sums of
// counters times strides, and occasionally other code. For a compiler that moves checks out of loops.
#pragma once

#include <string>

#include "choices.h"

namespace halyard::vm::test {

// Assembly text of a module "m" whose export "f" takes three buffers and three i64 and returns one i64. Every
// loop terminates, though it may take long.
std::string generate_loops(Choices& choices);

// The same kind of module with many loops or instructions: up to a thousand loops, consecutive and nested, or
// loops of up to a thousand instructions. Every loop has one or two iterations. For a compiler whose time is
// limited.
std::string generate_much(Choices& choices);

}  // namespace halyard::vm::test
