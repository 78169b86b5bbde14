// --memory: the memory that each function needs, as a table for people.
#pragma once

#include <string>

#include "common/json.h"

namespace halyard::tools {

// `analysis` is the JSON of halyard_module_analyze. Ends with a newline. Names are not made printable.
std::string memory_text(const Json& analysis);

}  // namespace halyard::tools
