// The short form of a flag for the output, "-o FILE", of tools that people call like a compiler.
#pragma once

#include "common/flags.h"
#include "common/tool.h"

namespace halyard::tools {

// Like run_tool(), but "-o FILE" and "-oFILE" stand for `output`.
int run_with_short_output(const ToolDescription& tool, const Flag& output, int argc, const char* const* argv,
                          Result<int> (*body)(const Flags& flags));

}  // namespace halyard::tools
