// Decides whether helper threads should share a dispatch.
#include "dispatch.h"

#include <algorithm>
#include <atomic>

#include "batch.h"
#include "halyard/driver/trace.hpp"
#include "kernel_call.h"

namespace halyard::local {

Result<> dispatch(const halyard_command_dispatch_t& command, const Execution& execution) {
  if (!execution.thread_pool || is_sequential(command)) return run_alone(command, execution);
  const WorkgroupCount count = HALYARD_TRY(workgroups_now(command, execution));
  const uint64_t total = local::total(count);
  if (total == 0) return {};
  HALYARD_TRY(make_ready(command, execution));
  Cost& cost = command.executable->workgroup_cost(command.function);
  const bool may_share = total > 1;
  // A kernel that has not run yet counts as long. Waking threads for a short kernel costs microseconds, once.
  // Measuring its first workgroup while other threads are idle may cost milliseconds.
  uint64_t each = cost.is_known() ? cost.value() : std::max<uint64_t>(kMaxCost / total, 1);
  const auto helpers_with = [&](uint64_t workgroups) {
    return helpers_for({cost_of(each, workgroups), std::min(each, kMaxCost), workgroups}, execution);
  };
  Helpers helpers = helpers_with(total);
  Tile tile = {0, total};
  if (helpers.count == 0) {
    const std::optional<kit::TraceDispatch> facts = describe(command, count, execution);
    const Stopwatch watch(true);
    kit::TraceSpan span(*execution.services, command.executable->kernel(command.function).name);
    span.set_sharing(helpers.sharing, 1);
    span.set_dispatch(facts);
    const Executable::Lease runner = HALYARD_TRY(prepare(command, execution));
    LoopSharing loops(command, facts, execution);
    const std::atomic<uint64_t> end = total;
    if (may_share) {  // measure the first workgroup to estimate the others
      tile.last = 1;
      HALYARD_TRY(run_tile(*runner, command, count, tile, end, execution, loops.get(), span));
      each = watch.elapsed();
      helpers = helpers_with(total - 1);
      // If one workgroup remains, the reason for the whole dispatch stays.
      if (total > 2) span.set_sharing(helpers.sharing, helpers.count + 1);
      tile.last = total;
    }
    if (helpers.count == 0) {
      HALYARD_TRY(run_tile(*runner, command, count, tile, end, execution, loops.get(), span));
      loops.report(span);
      watch.record(cost, total);
      return {};
    }
  }
  return share_out(command, count, tile.first, each, helpers.count, execution);
}

}  // namespace halyard::local
