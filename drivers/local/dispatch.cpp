// Giving a kernel what it is given, and finding out whether others should help.
#include "dispatch.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "batch.h"
#include "trace.h"

namespace halyard::local {

namespace {

bool is_sequential(const halyard_command_dispatch_t& command) {
  return command.executable->kernel(command.function).sequential;
}

}  // namespace

uint64_t pieces_of(const halyard_command_t& command) {
  if (command.kind != HALYARD_COMMAND_DISPATCH) return 1;
  const auto& dispatch = reinterpret_cast<const halyard_command_dispatch_t&>(command);
  if (dispatch.flags & HALYARD_DISPATCH_INDIRECT || is_sequential(dispatch)) return 1;
  return std::max<uint64_t>(total(workgroups_of(dispatch)), 1);
}

Result<Executable::Lease> prepare(const halyard_command_dispatch_t& command, const Execution& execution) {
  Executable::Lease worker = HALYARD_TRY(command.executable->lease());
  HALYARD_TRY(worker->begin(command.executable->kernel(command.function),
                            {command.constants, command.constant_count}, command.binding_count));
  for (uint32_t i = 0; i < command.binding_count; ++i) {
    const halyard_range_t& binding = command.bindings[i];
    Memory& memory = memory_of(binding, execution);
    const bool writable = memory.is_writable();
    uint8_t* const bytes = HALYARD_TRY(writable ? memory.bytes_to_write() : memory.bytes());
    const std::span<uint8_t> range(bytes + offset_of(binding, execution), binding.length);
    HALYARD_TRY(worker->bind(i, range, writable));
  }
  return worker;
}

Result<> dispatch(const halyard_command_dispatch_t& command, const Execution& execution) {
  WorkgroupCount count = workgroups_of(command);
  if (command.flags & HALYARD_DISPATCH_INDIRECT) {
    const std::span<const uint8_t> bytes = HALYARD_TRY(resolve(command.indirect, execution));
    std::memcpy(count.data(), bytes.data(), sizeof count);
  }
  const uint64_t total = local::total(count);
  if (total == 0) return {};
  Cost& cost = command.executable->workgroup_cost(command.function);
  const bool may_share = execution.workers && total > 1 && !is_sequential(command);
  uint64_t each = may_share && cost.is_known() ? cost.value() : 0;
  const auto helpers_with = [&](uint64_t workgroups) {
    return helpers_for({cost_of(each, workgroups), std::min(each, kLongestCost), workgroups}, execution);
  };
  uint32_t helpers = helpers_with(total);
  Tile tile = {0, total};
  if (helpers == 0) {
    const Stopwatch watch(execution.workers);
    const TraceSpan span(*execution.services, command.executable->kernel(command.function).name);
    const Executable::Lease worker = HALYARD_TRY(prepare(command, execution));
    const std::atomic<uint64_t> end = total;
    if (may_share) {  // the first workgroup tells what the others will take
      tile.last = 1;
      HALYARD_TRY(worker->run(command.function, count, tile, end, execution.stop));
      each = watch.elapsed();
      helpers = helpers_with(total - 1);
      tile.last = total;
    }
    if (helpers == 0) {
      HALYARD_TRY(worker->run(command.function, count, tile, end, execution.stop));
      watch.tell(cost, total);
      return {};
    }
  }
  return share_out(command, count, tile.first, each, helpers, execution);
}

}  // namespace halyard::local
