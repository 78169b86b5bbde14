// Sums of the costs of commands, up to a limit.
#include "command_cost.h"

#include <algorithm>

#include "kernel_call.h"

namespace halyard::local {

namespace {

constexpr uint64_t kBytesPerNanosecond = 4;  // a low estimate for writing memory, with or without reading

}  // namespace

uint64_t pieces_of(const halyard_command_t& command) {
  if (command.kind == HALYARD_COMMAND_FILL) {
    const uint64_t length = reinterpret_cast<const halyard_command_fill_t&>(command).target.length;
    return std::max<uint64_t>((length + kFillPiece - 1) / kFillPiece, 1);
  }
  if (command.kind != HALYARD_COMMAND_DISPATCH) return 1;
  const auto& dispatch = reinterpret_cast<const halyard_command_dispatch_t&>(command);
  if (dispatch.flags & HALYARD_DISPATCH_INDIRECT || is_sequential(dispatch)) return 1;
  return std::max<uint64_t>(total(workgroups_of(dispatch)), 1);
}

uint64_t bytes_cost(uint64_t length) { return std::min(length / kBytesPerNanosecond, kMaxCost); }

uint64_t dispatch_cost(const halyard_command_dispatch_t& dispatch) {
  const Cost& workgroup = dispatch.executable->workgroup_cost(dispatch.function);
  if (dispatch.flags & HALYARD_DISPATCH_INDIRECT || !workgroup.is_known()) return kMaxCost;
  return cost_of(workgroup.value(), total(workgroups_of(dispatch)));
}

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

void Load::add(const halyard_command_t& command, const PartialFills* fills) {
  const PartialFills::Fill* const partial = fills ? fills->of(command) : nullptr;
  const uint64_t whole = partial ? bytes_cost(partial->rest_bytes) : cost_of(command);
  const uint64_t count = partial ? 1 : std::min<uint64_t>(pieces_of(command), UINT32_MAX);
  cost += whole;
  longest = std::max(longest, whole / count);
  pieces += count;
}

}  // namespace halyard::local
