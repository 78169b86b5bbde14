// Numbers as arguments and results of functions. Specified by run-module-cli.md, section 3.
#pragma once

#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

// Parses a number of a type of the calling convention (i, I, f, F), by the rules of tensor elements.
// INVALID_ARGUMENT: not a value of the type.
Result<Value> parse_scalar(std::string_view text, char type);

}  // namespace halyard::tools
