// The functions of C that the written functions call: parts of the files in aot/support, embedded at build
// time.
#pragma once

#include <string>
#include <string_view>

namespace halyard::aot {

// The parts that `code` uses, directly or through other parts, in an order in which C accepts them.
// `has_static_kernels`: the program has kernels in object files.
std::string support_for(std::string_view code, bool has_static_kernels);

// The same for programs over a host: parts of aot/hal_runtime replace those of the same names.
std::string program_support_for(std::string_view code);

// Whether a word is in one of the parts or in the program for --main: a function with this name may be there
// twice.
bool is_support_word(std::string_view word);

// The whole program for --main that follows the generated part of its file.
std::string main_program();

}  // namespace halyard::aot
