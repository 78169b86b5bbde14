// Adding up commands until it is too much.
#include "estimate.h"

#include <algorithm>

#include "commands.h"
#include "dispatch.h"

namespace halyard::local {

namespace {

constexpr uint64_t kBytesPerNanosecond = 4;  // memory that is written and maybe read, on a slow day

uint64_t bytes_cost(uint64_t length) { return std::min(length / kBytesPerNanosecond, kLongestCost); }

uint64_t dispatch_cost(const halyard_command_dispatch_t& dispatch) {
  const Cost& workgroup = dispatch.executable->workgroup_cost(dispatch.function);
  if (dispatch.flags & HALYARD_DISPATCH_INDIRECT || !workgroup.is_known()) return kLongestCost;
  return cost_of(workgroup.value(), total(workgroups_of(dispatch)));
}

uint64_t list_cost(const CommandList& list) {
  if (list.cost().is_known()) return list.cost().value();
  uint64_t cost = 0;
  for (auto command = list.commands(); !command.empty() && cost < kLongestCost;) {
    const auto& header = *reinterpret_cast<const halyard_command_t*>(command.data());
    cost += cost_of(header);
    command = command.subspan(header.size);
  }
  return std::min(cost, kLongestCost);
}

}  // namespace

uint64_t cost_of(const halyard_command_t& command) {
  switch (command.kind) {
    case HALYARD_COMMAND_FILL:
      return bytes_cost(reinterpret_cast<const halyard_command_fill_t&>(command).target.length);
    case HALYARD_COMMAND_UPDATE:
      return bytes_cost(reinterpret_cast<const halyard_command_update_t&>(command).target.length);
    case HALYARD_COMMAND_COPY:
      return bytes_cost(reinterpret_cast<const halyard_command_copy_t&>(command).target.length);
    case HALYARD_COMMAND_DISPATCH:
      return dispatch_cost(reinterpret_cast<const halyard_command_dispatch_t&>(command));
    default:
      return 0;
  }
}

void Load::add(const halyard_command_t& command) {
  const uint64_t whole = cost_of(command);
  const uint64_t count = std::min<uint64_t>(pieces_of(command), UINT32_MAX);
  cost += whole;
  longest = std::max(longest, whole / count);
  pieces += count;
}

uint64_t cost_of(const halyard_operation_t& operation) {
  switch (operation.kind) {
    case HALYARD_OPERATION_BARRIER:
    case HALYARD_OPERATION_ALLOCA:
    case HALYARD_OPERATION_DEALLOCA:
      return 0;
    case HALYARD_OPERATION_FILL:
      return bytes_cost(operation.fill.target.length);
    case HALYARD_OPERATION_UPDATE:
      return bytes_cost(operation.update.target.length);
    case HALYARD_OPERATION_COPY:
      return bytes_cost(operation.copy.target.length);
    case HALYARD_OPERATION_DISPATCH:
      return dispatch_cost(*operation.dispatch.dispatch);
    case HALYARD_OPERATION_EXECUTE:
      return list_cost(*operation.execute.list);
    default:  // files
      return kLongestCost;
  }
}

}  // namespace halyard::local
