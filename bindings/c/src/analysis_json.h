// An analysis as JSON (docs/vm-dump.md).
#pragma once

#include <string>

#include "analysis/analysis.h"
#include "inspection.h"

namespace halyard::c {

// RESOURCE_EXHAUSTED: more than 256 MiB.
Result<std::string> analysis_json(const analysis::Analysis& analysis, const Inspection& inspection);

}  // namespace halyard::c
