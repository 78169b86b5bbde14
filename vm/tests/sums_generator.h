// Generates functions as compilers write kernels for products of matrices: a nest of loops that fills outputs
// with a value, one that adds terms to each of them, and one that computes a result from each. Sometimes the
// nests differ in a detail, so that they cannot be one.
#pragma once

#include <string>

#include "choices.h"

namespace halyard::vm::test {

// Assembly text of a module "m" whose export "f" takes three buffers and three i64 and returns one i64.
std::string generate_sums(Choices& choices);

}  // namespace halyard::vm::test
