// The errors that a page shows: from the report of vm-diff --json.
#pragma once

#include <string>

#include "common/failure.h"
#include "common/json.h"

namespace halyard::tools {

// The member `diff` of a page (docs/vm-dump.md) from the file that vm-diff --json=FILE wrote.
// INVALID_ARGUMENT: no such report.
Result<Json> page_diff(const std::string& path);

}  // namespace halyard::tools
