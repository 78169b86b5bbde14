// How a tool exits during a compilation. Releasing an object that owns a compile thread waits for the
// function that is being compiled, which the tool no longer needs. So the tool keeps such objects until the
// process ends. The process then ends with std::_Exit, because exit handlers would destroy LLVM's globals
// while that thread uses them.
#pragma once

namespace halyard::tools {

// Adds a reference to a handle of the C ABI that is never released. run_tool() then ends the process without
// exit handlers, so all output of the tool must be complete when its body returns.
void keep_until_exit(void* handle);

bool skips_exit_handlers();

}  // namespace halyard::tools
