// Prepares the arguments of a kernel.
#include "kernel_call.h"

#include <atomic>
#include <cstring>

#include "halyard/driver/trace.hpp"

namespace halyard::local {

Result<WorkgroupCount> workgroups_now(const halyard_command_dispatch_t& command, const Execution& execution) {
  WorkgroupCount count = workgroups_of(command);
  if (command.flags & HALYARD_DISPATCH_INDIRECT) {
    const std::span<const uint8_t> bytes = HALYARD_TRY(resolve(command.indirect, execution));
    std::memcpy(count.data(), bytes.data(), sizeof count);
  }
  return count;
}

bool is_sequential(const halyard_command_dispatch_t& command) {
  return command.executable->kernel(command.function).sequential;
}

Result<> make_ready(const halyard_command_dispatch_t& command, const Execution& execution) {
  if (!execution.foresees) return {};
  if (!(command.flags & HALYARD_DISPATCH_INDIRECT)) command.executable->foresee(command);
  command.executable->settle(command.function, execution.stop);
  return go_on_unless_stopped(execution.stop);
}

std::optional<kit::TraceDispatch> describe(const halyard_command_dispatch_t& command,
                                           const WorkgroupCount& count, const Execution& execution) {
  if (!kit::trace_function(*execution.services)) [[likely]]
    return {};
  kit::TraceDispatch dispatch = command.executable->describe(command, count);
  dispatch.workgroups = total(count);
  dispatch.submission = execution.submission;
  dispatch.command = &command.header;
  return dispatch;
}

Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution) {
  Executable::Lease runner = HALYARD_TRY(command.executable->lease());
  HALYARD_TRY(runner->begin(command.executable->kernel(command.function),
                            {command.constants, command.constant_count}, command.binding_count));
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    const halyard_range_t& binding = command.bindings[i];
    Memory& memory = memory_of(binding, execution);
    const bool writable = memory.is_writable();
    uint8_t* const bytes = HALYARD_TRY(writable ? memory.bytes_to_write() : memory.bytes());
    const std::span<uint8_t> range(bytes + offset_of(binding, execution), binding.length);
    HALYARD_TRY(runner->bind(i, range, writable));
  }
  return runner;
}

Result<> run_tile(KernelRunner& runner, const halyard_command_dispatch_t& command,
                  const WorkgroupCount& count, Tile& tile, const std::atomic<uint64_t>& end,
                  const Execution& execution, const halyard_jit_sharing_t* sharing, kit::TraceSpan& span) {
  span.add_workgroups(tile.last - tile.first);
  Result<> outcome = runner.run(command.function, count, tile, end, execution.stop, sharing);
  if (span.is_traced()) span.add_checked_loops(runner.take_checked_loops());
  return outcome;
}

namespace {

// Why this thread runs all workgroups of the dispatch (HALYARD_SHARING_*).
uint32_t why_alone(const halyard_command_dispatch_t& command, const Execution& execution,
                   uint64_t workgroups) {
  if (!execution.thread_pool || execution.thread_pool->limit() == 1) return HALYARD_SHARING_ONE_THREAD;
  if (is_sequential(command)) return HALYARD_SHARING_SEQUENTIAL;
  return workgroups == 1 ? HALYARD_SHARING_ONE_WORKGROUP : HALYARD_SHARING_UNKNOWN;
}

}  // namespace

Result<> run_alone(const halyard_command_dispatch_t& command, const Execution& execution) {
  const WorkgroupCount count = HALYARD_TRY(workgroups_now(command, execution));
  const uint64_t total = local::total(count);
  if (total == 0) return {};
  HALYARD_TRY(make_ready(command, execution));
  const std::optional<kit::TraceDispatch> facts = describe(command, count, execution);
  const Stopwatch watch(execution.thread_pool);
  kit::TraceSpan span(*execution.services, command.executable->kernel(command.function).name);
  span.set_sharing(why_alone(command, execution, total), 1);
  span.set_dispatch(facts);
  const Executable::Lease runner = HALYARD_TRY(prepare(command, execution));
  const std::atomic<uint64_t> end = total;
  Tile tile = {0, total};
  HALYARD_TRY(run_tile(*runner, command, count, tile, end, execution, nullptr, span));
  watch.record(command.executable->workgroup_cost(command.function), total);
  return {};
}

}  // namespace halyard::local
