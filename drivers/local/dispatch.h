// Dispatch: a kernel, run once for each workgroup of a grid, by this thread and, where that is worth it, by
// others.
#pragma once

#include <cstdint>

#include "commands.h"

namespace halyard::local {

// Of a dispatch that is not indirect.
inline WorkgroupCount workgroups_of(const halyard_command_dispatch_t& command) {
  return {command.workgroups[0], command.workgroups[1], command.workgroups[2]};
}
// How many pieces several threads may have, in any order: the workgroups of a dispatch, or 1 where it is not
// known, where the kernel forbids it and for commands of other kinds.
uint64_t pieces_of(const halyard_command_t& command);

Result<> dispatch(const halyard_command_dispatch_t& command, const Execution& execution);

// A worker of the dispatch's executable that has been given its constants and bindings.
Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
