// How a tool's process ends while something is being compiled. Releasing an object that owns a compile thread
// waits for the function under way, which the tool no longer needs. Such objects are kept until the process
// ends, and it then ends by std::_Exit: exit handlers would destroy LLVM's globals while that thread uses
// them.
#pragma once

namespace halyard::tools {

// Adds a reference to a handle of the C ABI that is never released. From then on run_tool() ends the process
// without exit handlers, so everything that the tool writes must be complete when its body has returned.
void keep_until_exit(void* handle);

bool skips_exit_handlers();

}  // namespace halyard::tools
