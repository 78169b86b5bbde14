// Analyses a module with the function and the inputs of the command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/json.h"

namespace halyard::tools {

// `inputs` are texts of --input. If there are any, `function` may be empty for a module with one function.
// The JSON of halyard_module_analyze.
Result<Json> analyze_module(std::span<const std::byte> module, std::string function,
                            const std::vector<std::string>& inputs);

}  // namespace halyard::tools
