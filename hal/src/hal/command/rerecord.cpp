// One recording call for each kind of command.
#include "hal/command/rerecord.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace halyard::hal {

namespace {

struct Recorder {
  const Rerecording& to;

  BufferRange range(const CommandRange& from) const {
    return {from.buffer == kNoBuffer ? nullptr : to.buffers[from.buffer].get(), from.slot, from.offset,
            from.length};
  }

  Result<> operator()(const BarrierCommand& command) const {
    return to.commands.barrier(command.source_stages, command.target_stages);
  }
  Result<> operator()(const BeginGroupCommand& command) const {
    return to.commands.begin_debug_group(command.label);
  }
  Result<> operator()(const EndGroupCommand&) const { return to.commands.end_debug_group(); }
  Result<> operator()(const FillCommand& command) const {
    return to.commands.fill(range(command.target), command.pattern, command.pattern_size);
  }
  Result<> operator()(const UpdateCommand& command) const {
    return to.commands.update(command.bytes, range(command.target));
  }
  Result<> operator()(const CopyCommand& command) const {
    return to.commands.copy(range(command.source), range(command.target));
  }
  Result<> operator()(const DispatchCommand& command) const {
    CommandBuffer::Dispatch dispatch;
    dispatch.executable = to.executables[command.executable].get();
    dispatch.function = command.function;
    std::ranges::copy(command.workgroups, dispatch.workgroups);
    dispatch.constants = command.constants;
    std::vector<BufferRange> bindings;
    for (const CommandRange& binding : command.bindings) bindings.push_back(range(binding));
    dispatch.bindings = bindings;
    const BufferRange counts = range(command.counts);
    if (command.is_indirect) dispatch.indirect = &counts;
    return to.commands.dispatch(dispatch);
  }
};

}  // namespace

Result<> Rerecording::record(const Command& command) const { return std::visit(Recorder{*this}, command); }

}  // namespace halyard::hal
