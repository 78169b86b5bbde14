// Calling conventions of the C ABI, such as "0rr_r": one character for each argument and result.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"
#include "common/inputs.h"

namespace halyard::tools {

// The arguments, or results, of a calling convention without spans: "rIf"; empty for none.
std::string convention_arguments(std::string_view convention);
std::string convention_results(std::string_view convention);

// The types of the arguments that --input flags provide: all except the two fences of an asynchronous
// function. INVALID_ARGUMENT: the number of arguments varies.
Result<std::string> input_types(const halyard_function_description_t& function);

// Adds the two fences of an asynchronous function: a null wait fence and a new signal fence, which is
// returned.
Result<Fence> add_fences(const Device& device, Arguments& arguments);

}  // namespace halyard::tools
