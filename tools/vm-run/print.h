// Results as text. Specified by run-module-cli.md, section 4.
#pragma once

#include <cstdint>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

// "i32=5\n", "hal.buffer_view\n4xf32=1 2 3 4\n", "(null)\n", a list with its elements.
Result<std::string> value_text(const Value& value, uint64_t max_elements);

}  // namespace halyard::tools
