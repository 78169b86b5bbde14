// The functions of f32 of vm/decode/elementary.inc in C, from the templates with which the interpreter
// computes them (vm/decode/elementary.h).
#pragma once

#include <string>

namespace halyard::aot {

// The parts vm_exp, vm_sin and so on, in the form of the files of aot/support.
std::string elementary_parts();

}  // namespace halyard::aot
