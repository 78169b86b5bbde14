// The flags of tools that write pages.
#pragma once

#include "common/flags.h"

namespace halyard::tools::flag {

inline constexpr Text diff = {
    "diff", "FILE",
    "With a page (--html, --profile=FILE.html): shows the errors of the steps, from the "
    "report of vm-diff --json=FILE.",
    "--diff=report.json"};

}  // namespace halyard::tools::flag
