// A command of the user's, run to its end: what it printed, and how it ended.
#pragma once

#include <string>
#include <vector>

#include "calls.h"
#include "common/failure.h"

namespace halyard::tools {

struct ChildOutput {
  std::string out;
  std::string error;
  int exit_code = 0;  // or -1
  int signal = 0;     // that ended it, or 0
};

// `command` is a piece of shell, such as "PATH/runner --flag"; `arguments` are appended to it as they are.
// Ctrl-C ends it. UNAVAILABLE: it cannot be started.
Result<ChildOutput> run_child(const std::string& command, const std::vector<std::string>& arguments,
                              Stop& stop);

}  // namespace halyard::tools
