// Runs the batches of a list in order.
#include "command_list.h"

#include <algorithm>
#include <new>
#include <utility>

#include "batch.h"
#include "command_cost.h"
#include "dispatch.h"
#include "kernel_runner.h"
#include "partial_fills.h"
#include "perform.h"
#include "team.h"

namespace halyard::local {

namespace {

// A longer run of commands is split into several batches.
constexpr size_t kMaxInBatch = 32;
// Executions after which fills are looked at: in about as many the looking is repaid.
constexpr uint32_t kWorthLooking = 32;

const halyard_command_t* command_at(const uint8_t* bytes) {
  return reinterpret_cast<const halyard_command_t*>(bytes);
}

// Called only on devices with workers.
Result<> execute_batch(std::span<const halyard_command_t* const> commands, const Execution& execution) {
  // dispatch() decides about a dispatch that is alone.
  if (commands.size() > 1 || commands[0]->kind != HALYARD_COMMAND_DISPATCH) {
    Load load;
    for (const halyard_command_t* command : commands) load.add(*command, execution.partial_fills);
    if (const Helpers helpers = helpers_for(load, execution); helpers.count != 0)
      return share_out(commands, load.cost, helpers.count, execution);
  }
  for (const halyard_command_t* command : commands) {
    if (command->kind == HALYARD_COMMAND_DISPATCH) {
      HALYARD_TRY(go_on_unless_stopped(execution.stop));
      HALYARD_TRY(dispatch(as<halyard_command_dispatch_t>(*command), execution));
    } else {
      HALYARD_TRY(perform(*command, execution));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<halyard_driver_command_list>> CommandList::create(
    const halyard_command_list_args_t& args) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(args.commands);
  for (uint64_t position = 0; position < args.commands_size;) {
    const halyard_command_t& command = *command_at(bytes + position);
    if (!has_command(command.kind))
      return fail(Code::UNIMPLEMENTED, "this device has no commands of kind {}", command.kind);
    position += command.size;
  }
  return std::make_unique<halyard_driver_command_list>(args);
}

uint64_t CommandList::expected_cost() const {
  if (cost_.is_known()) return cost_.value();
  uint64_t cost = 0;
  for (size_t position = 0; position < commands_.size() && cost < kMaxCost;) {
    const halyard_command_t* command = command_at(commands_.data() + position);
    cost += cost_of(*command);
    position += command->size;
  }
  return std::min(cost, kMaxCost);
}

template <typename Visit>
bool CommandList::visit_batches(Visit&& visit) const {
  const halyard_command_t* batch[kMaxInBatch];
  size_t batched = 0;
  for (size_t position = 0; position < commands_.size();) {
    const halyard_command_t* command = command_at(commands_.data() + position);
    position += command->size;
    if (does_something(command->kind)) batch[batched++] = command;
    const bool ends_batch = command->kind == HALYARD_COMMAND_BARRIER || position == commands_.size();
    if ((ends_batch || batched == kMaxInBatch) && batched != 0 &&
        !visit(std::span<const halyard_command_t* const>(batch, std::exchange(batched, 0))))
      return false;
  }
  return true;
}

// Estimates from the last durations of the kernels, because a list that is recorded again for each call has
// no last duration.
bool CommandList::is_worth_sharing(unsigned threads, const PartialFills* fills) const {
  if (threads == 1 || (cost_.is_known() && cost_.value() < kWorthSharing)) return false;
  uint64_t saving = 0;
  return !visit_batches([&](std::span<const halyard_command_t* const> commands) {
    Load load;
    for (const halyard_command_t* command : commands) load.add(*command, fills);
    saving += load.saving(threads);
    return saving < kWorthSharing;
  });
}

void CommandList::foresee() const {
  for (size_t position = 0; position < commands_.size();) {
    const halyard_command_t* command = command_at(commands_.data() + position);
    position += command->size;
    if (command->kind != HALYARD_COMMAND_DISPATCH) continue;
    const auto& dispatch = as<halyard_command_dispatch_t>(*command);
    if (!(dispatch.flags & HALYARD_DISPATCH_INDIRECT)) dispatch.executable->foresee(dispatch);
  }
}

const PartialFills* CommandList::partial_fills(const BindingTable& table, const uint32_t* stop) const {
  FillState state = fill_state_.load(std::memory_order_acquire);
  if (state == FillState::unknown && executions_.fetch_add(1, std::memory_order_relaxed) < kWorthLooking)
    return nullptr;
  if (state == FillState::unknown &&
      fill_state_.compare_exchange_strong(state, FillState::looking, std::memory_order_acquire)) {
    try {
      fills_ = PartialFills::find(commands_, stop);
    } catch (const std::bad_alloc&) {
      // Every fill writes all of its bytes.
    }
    state = FillState::known;
    fill_state_.store(state, std::memory_order_release);
  }
  return state == FillState::known && fills_ && fills_->hold_for(table) ? fills_.get() : nullptr;
}

Result<> CommandList::execute(const Execution& execution) const {
  if (execution.foresees) foresee();
  Execution own = execution;
  own.partial_fills = is_one_shot_ ? nullptr : partial_fills(execution.table, execution.stop);
  const auto complete_fills = [&](const halyard_command_t* first, const halyard_command_t* last) {
    if (own.partial_fills) own.partial_fills->complete(first, last, own);
  };
  if (!execution.thread_pool) {
    for (size_t position = 0; position < commands_.size();) {
      const halyard_command_t* command = command_at(commands_.data() + position);
      if (Result<> outcome = perform(*command, own); !outcome) {
        complete_fills(command, command);
        return outcome;
      }
      position += command->size;
    }
    return {};
  }
  const Stopwatch watch(true);
  const bool is_shared = is_worth_sharing(execution.thread_pool->limit(), own.partial_fills);
  const ThreadPool::KeepAwake keep_awake(*execution.thread_pool, is_shared);
  const Team::Owned team =
      is_shared ? Team::create(*execution.thread_pool, *execution.nodes, expected_cost()) : nullptr;
  own.team = team.get();
  Result<> outcome;
  visit_batches([&](std::span<const halyard_command_t* const> commands) {
    outcome = execute_batch(commands, own);
    if (!outcome) complete_fills(commands.front(), commands.back());
    return outcome.has_value();
  });
  if (outcome) watch.record(cost_);
  return outcome;
}

}  // namespace halyard::local
