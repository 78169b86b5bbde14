// Kernel calls: the arguments of a dispatch's kernel and its number of workgroups.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "executable.h"
#include "execution.h"
#include "halyard/driver/trace.hpp"

namespace halyard::local {

// For any dispatch. The count of an indirect dispatch is read from memory now. FAILED_PRECONDITION: that
// memory has no bytes.
Result<WorkgroupCount> workgroups_now(const halyard_command_dispatch_t& command, const Execution& execution);

// Whether the workgroups must not run in parallel.
bool is_sequential(const halyard_command_dispatch_t& command);

// Compiles the dispatch's kernel if that is quicker than to interpret it (early_compilation.h). Fails if the
// work is stopped meanwhile.
Result<> make_ready(const halyard_command_dispatch_t& command, const Execution& execution);

// The facts about a dispatch that its spans report; none unless the host records a trace.
std::optional<kit::TraceDispatch> describe(const halyard_command_dispatch_t& command,
                                           const WorkgroupCount& count, const Execution& execution);

// Leases a kernel runner of the dispatch's executable and sets its constants and bindings.
Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution);

// Runs a tile of the dispatch's workgroups, as KernelRunner::run does, and adds it to the span.
Result<> run_tile(KernelRunner& runner, const halyard_command_dispatch_t& command,
                  const WorkgroupCount& count, Tile& tile, const std::atomic<uint64_t>& end,
                  const Execution& execution, const halyard_jit_sharing_t* sharing, kit::TraceSpan& span);

// Runs the whole dispatch on this thread.
Result<> run_alone(const halyard_command_dispatch_t& command, const Execution& execution);

}  // namespace halyard::local
