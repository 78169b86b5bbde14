// Handles of a recording become numbers.
#include "command_list.h"

#include <vector>

#include "executable.h"
#include "memory.h"

namespace halyard::remote {

namespace {

using Offset = flatbuffers::Offset<void>;

kit::Result<Offset> dispatch_to_wire(flatbuffers::FlatBufferBuilder& builder,
                                     const std::shared_ptr<Connection>& server,
                                     const halyard_command_dispatch_t& dispatch) {
  std::vector<wire::Range> bindings;
  for (uint32_t i = 0; i < dispatch.binding_count; ++i)
    bindings.push_back(HALYARD_KIT_TRY(to_wire(server, dispatch.bindings[i])));
  const auto ranges = builder.CreateVectorOfStructs(bindings);
  const auto constants = builder.CreateVector(dispatch.constants, dispatch.constant_count);
  const wire::Workgroups workgroups(dispatch.workgroups[0], dispatch.workgroups[1], dispatch.workgroups[2]);
  const bool is_indirect = dispatch.flags & HALYARD_DISPATCH_INDIRECT;
  wire::Range counts;
  if (is_indirect) counts = HALYARD_KIT_TRY(to_wire(server, dispatch.indirect));
  const uint64_t executable = reinterpret_cast<const Executable*>(dispatch.executable)->number();
  return wire::CreateDispatch(builder, executable, dispatch.function, &workgroups,
                              is_indirect ? &counts : nullptr, constants, ranges)
      .Union();
}

// UNIMPLEMENTED names the kind [R102].
kit::Result<flatbuffers::Offset<wire::RecordedCommand>> command_to_wire(
    Message& message, const std::shared_ptr<Connection>& server, const halyard_command_t& command) {
  flatbuffers::FlatBufferBuilder& builder = message.builder();
  const auto recorded = [&](wire::Command kind, Offset body) {
    return wire::CreateRecordedCommand(builder, kind, body);
  };
  switch (command.kind) {
    case HALYARD_COMMAND_BARRIER: {
      const auto& it = reinterpret_cast<const halyard_command_barrier_t&>(command);
      return recorded(wire::Command::Barrier,
                      wire::CreateBarrier(builder, it.source_stages, it.target_stages).Union());
    }
    case HALYARD_COMMAND_BEGIN_GROUP: {
      const auto& it = reinterpret_cast<const halyard_command_begin_group_t&>(command);
      const auto label = message.text(kit::view(it.label));
      return recorded(wire::Command::BeginGroup, wire::CreateBeginGroup(builder, label).Union());
    }
    case HALYARD_COMMAND_END_GROUP:
      return recorded(wire::Command::EndGroup, wire::CreateEndGroup(builder).Union());
    case HALYARD_COMMAND_FILL: {
      const auto& it = reinterpret_cast<const halyard_command_fill_t&>(command);
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, it.target));
      return recorded(wire::Command::Fill,
                      wire::CreateFill(builder, &target, it.pattern, it.pattern_size).Union());
    }
    case HALYARD_COMMAND_UPDATE: {
      const auto& it = reinterpret_cast<const halyard_command_update_t&>(command);
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, it.target));
      const auto bytes = builder.CreateVector(static_cast<const uint8_t*>(it.source), it.target.length);
      return recorded(wire::Command::Update, wire::CreateUpdate(builder, &target, bytes).Union());
    }
    case HALYARD_COMMAND_COPY: {
      const auto& it = reinterpret_cast<const halyard_command_copy_t&>(command);
      const wire::Range source = HALYARD_KIT_TRY(to_wire(server, it.source));
      const wire::Range target = HALYARD_KIT_TRY(to_wire(server, it.target));
      return recorded(wire::Command::Copy, wire::CreateCopy(builder, &source, &target).Union());
    }
    case HALYARD_COMMAND_DISPATCH:
      return recorded(wire::Command::Dispatch,
                      HALYARD_KIT_TRY(dispatch_to_wire(
                          builder, server, reinterpret_cast<const halyard_command_dispatch_t&>(command))));
    default:
      return kit::Failure{HALYARD_UNIMPLEMENTED,
                          "command of kind " + std::to_string(command.kind) +
                              " is unknown; expected barrier, fill, update, copy, dispatch or group"};
  }
}

// Of the data in a recording, so that a builder never grows without bounds.
uint64_t bytes_in(const halyard_command_t& command) {
  constexpr uint64_t kEach = 256;
  if (command.kind == HALYARD_COMMAND_UPDATE)
    return kEach + reinterpret_cast<const halyard_command_update_t&>(command).target.length;
  if (command.kind == HALYARD_COMMAND_DISPATCH) {
    const auto& it = reinterpret_cast<const halyard_command_dispatch_t&>(command);
    return kEach + uint64_t{it.constant_count} * 4 + uint64_t{it.binding_count} * sizeof(wire::Range);
  }
  return kEach;
}

}  // namespace

kit::Result<wire::Range> to_wire(const std::shared_ptr<Connection>& server, const halyard_range_t& range) {
  uint64_t memory = 0;
  if (range.memory) memory = HALYARD_KIT_TRY(reinterpret_cast<Memory*>(range.memory)->number_at(server));
  return wire::Range(memory, range.slot, 0, range.offset, range.length);
}

kit::Result<std::unique_ptr<CommandList>> CommandList::create(const std::shared_ptr<Connection>& server,
                                                              const halyard_command_list_args_t& args) {
  HALYARD_KIT_TRY(server->check());
  auto list = std::make_unique<CommandList>(server);
  Message message;
  std::vector<flatbuffers::Offset<wire::RecordedCommand>> commands;
  const auto* at = reinterpret_cast<const char*>(args.commands);
  uint64_t size = 0;
  for (uint32_t i = 0; i < args.command_count; ++i) {
    const auto& command = *reinterpret_cast<const halyard_command_t*>(at);
    size += bytes_in(command);
    if (size > kMaxMessage)
      return kit::Failure{HALYARD_RESOURCE_EXHAUSTED,
                          "a recording for a remote device has at most " + std::to_string(kMaxMessage) +
                              " bytes with the data of its updates; this one has more at command " +
                              std::to_string(i) + "; use several recordings"};
    commands.push_back(HALYARD_KIT_TRY(command_to_wire(message, server, command)));
    if (server->is_traced()) list->commands_.push_back(at);
    at += command.size;
  }
  const auto all = message.builder().CreateVector(commands);
  server->send(message.to_server(wire::CreateListCreate(message.builder(), list->number_, args.one_shot != 0,
                                                        args.affinity, args.binding_count, all)));
  return list;
}

CommandList::~CommandList() {
  Message message;
  server_->send(message.to_server(wire::CreateListDestroy(message.builder(), number_)));
}

}  // namespace halyard::remote
