// Calling conventions as the C ABI gives them, "0rr_r": one character for each argument and result.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

// The arguments, or results, of a calling convention without spans: "rIf"; empty for none.
std::string convention_arguments(std::string_view convention);
std::string convention_results(std::string_view convention);

// What the --input flags of a function stand for: its arguments without the two fences of an asynchronous
// one. INVALID_ARGUMENT: a number of arguments that varies.
Result<std::string> input_types(const halyard_function_description_t& function);

}  // namespace halyard::tools
