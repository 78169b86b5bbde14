// Kernel calls: the arguments of a dispatch's kernel and its number of workgroups.
#pragma once

#include <cstdint>

#include "executable.h"
#include "execution.h"

namespace halyard::local {

// For direct dispatches only.
inline WorkgroupCount workgroups_of(const halyard_command_dispatch_t& command) {
  return {command.workgroups[0], command.workgroups[1], command.workgroups[2]};
}
// For any dispatch; an indirect one reads its count from memory now. FAILED_PRECONDITION: that memory has no
// bytes.
Result<WorkgroupCount> workgroups_now(const halyard_command_dispatch_t& command, const Execution& execution);

// Its workgroups must not run in parallel.
bool is_sequential(const halyard_command_dispatch_t& command);

// Takes a kernel runner of the dispatch's executable and sets its constants and bindings.
Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution);

// Runs all of it on this thread.
Result<> run_alone(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
