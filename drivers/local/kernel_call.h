// Kernel calls: what a dispatch gives its kernel, and how many workgroups there are of it.
#pragma once

#include <cstdint>

#include "executable.h"
#include "execution.h"

namespace halyard::local {

// Of a dispatch that is not indirect.
inline WorkgroupCount workgroups_of(const halyard_command_dispatch_t& command) {
  return {command.workgroups[0], command.workgroups[1], command.workgroups[2]};
}
// Of any, as its bytes say now. FAILED_PRECONDITION: they are not there.
Result<WorkgroupCount> workgroups_now(const halyard_command_dispatch_t& command, const Execution& execution);

// Several threads may not run its workgroups at once.
bool is_sequential(const halyard_command_dispatch_t& command);

// A worker of the dispatch's executable that has been given its constants and bindings.
Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution);

// All of it on this thread.
Result<> run_alone(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
