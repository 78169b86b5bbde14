// exp, tanh and erf of f32 in C, from the templates with which the interpreter computes them
// (vm/decode/elementary.h).
#pragma once

#include <string>

namespace halyard::aot {

// The parts vm_exp, vm_tanh and vm_erf, in the form of the files of aot/support.
std::string elementary_parts();

}  // namespace halyard::aot
