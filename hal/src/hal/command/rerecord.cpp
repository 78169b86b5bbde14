// Passes the fields of a command as arguments to its recording function.
#include "hal/command/rerecord.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
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

  BufferRange field(command_field::Source, const CommandRange& from) const { return range(from); }
  BufferRange field(command_field::Target, const CommandRange& from) const { return range(from); }
  template <typename Kind, typename Value>
  const Value& field(Kind, const Value& from) const {
    return from;  // NOLINT(bugprone-return-const-ref-from-parameter): a field of a command, which stays
  }

  template <typename... Parameters, typename... Fields>
  Result<> record(Result<> (CommandBuffer::*function)(Parameters...), const Fields&... fields) const {
    return (to.commands.*function)(fields...);
  }
  Result<> record(Result<> (CommandBuffer::*function)(const CommandBuffer::Dispatch&), uint32_t executable,
                  uint32_t number, std::string_view, const std::array<uint32_t, 3>& workgroups,
                  const std::optional<CommandRange>& counts, std::span<const uint32_t> constants,
                  const std::vector<CommandRange>& bindings) const {
    CommandBuffer::Dispatch dispatch;
    dispatch.executable = to.executables[executable].get();
    dispatch.function = number;
    std::ranges::copy(workgroups, dispatch.workgroups);
    dispatch.constants = constants;
    std::vector<BufferRange> ranges;
    for (const CommandRange& binding : bindings) ranges.push_back(range(binding));
    dispatch.bindings = ranges;
    const BufferRange indirect = counts ? range(*counts) : BufferRange();
    if (counts) dispatch.indirect = &indirect;
    return (to.commands.*function)(dispatch);
  }

  Result<> record(Result<> (CommandBuffer::*function)(const CommandBuffer::Collective&), uint32_t channel,
                  uint32_t operation, uint32_t parameter, const BufferRange& send, const BufferRange& receive,
                  uint64_t element_count) const {
    if (channel >= to.channels.size())
      return fail(
          Code::UNIMPLEMENTED,
          "collectives cannot be executed again: that needs the other ranks of their channel; run the "
          "program itself");
    CommandBuffer::Collective collective;
    collective.channel = to.channels[channel];
    collective.operation = operation;
    collective.parameter = parameter;
    collective.send = send;
    collective.receive = receive;
    collective.element_count = element_count;
    return (to.commands.*function)(collective);
  }

#define FIELD(Kind, name) , field(command_field::Kind(), command.name)
#define HALYARD_COMMAND(Name, name, KIND, word, function, fields)            \
  Result<> operator()([[maybe_unused]] const Name##Command& command) const { \
    return record(&CommandBuffer::function fields);                          \
  }
#include "hal/command/commands.inc"
};

}  // namespace

Result<> Rerecording::record(const Command& command) const { return std::visit(Recorder{*this}, command); }

}  // namespace halyard::hal
