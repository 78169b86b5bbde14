// The main function of every tool.
#pragma once

#include "common/flags.h"

namespace halyard::tools {

// Reads the flags, prints --help or --version or calls `body`, prints an error to
// standard error as "tool: CODE; message", checks that standard output could be written, and returns the exit
// code.
int run_tool(const ToolDescription& tool, int argc, const char* const* argv,
             Result<int> (*body)(const Flags& flags));

}  // namespace halyard::tools
