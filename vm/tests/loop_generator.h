// Makes functions as kernels are: nests of loops over buffers, with indices that are sums of counters times
// strides, and now and then something else. For a compiler that takes checks out of loops.
#pragma once

#include <string>

#include "choices.h"

namespace halyard::vm::test {

// Assembly text of a module "m" whose export "f" takes three buffers and three i64 and gives one i64. Every
// loop ends, though not always soon.
std::string generate_loops(Choices& choices);

// The same kind of module with much of one thing: up to a thousand loops, one after another and inside each
// other, or loops of up to a thousand instructions. Every loop makes one turn or two. For a compiler that may
// take only so long.
std::string generate_much(Choices& choices);

}  // namespace halyard::vm::test
