// The functions of f32 of vm/elementary/functions.inc in C, from the templates with which the interpreter
// computes them (vm/elementary/functions.h).
#pragma once

#include <string>

namespace halyard::aot {

// The parts vm_exp, vm_sin and so on, in the form of the files of aot/support.
std::string elementary_parts();

}  // namespace halyard::aot
