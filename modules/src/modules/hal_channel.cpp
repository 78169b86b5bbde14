// hal.channel.*: channels between the ranks of a program. Specified by hal-module.md, "Channel".
#include "hal/channel/channel.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {

Result<Ref<hal::Channel>> channel_create(HalOptions& state, hal::Device&, uint64_t, uint64_t, vm::Buffer* id,
                                         vm::Buffer* group, int32_t rank, int32_t count) {
  hal::Channel::Options options;
  if (id) options.id = text(*id);
  if (group) options.group = text(*group);
  options.rank = rank;
  options.count = count;
  return state.open_channels->open(options);
}

Result<Ref<hal::Channel>> channel_split(hal::Channel& channel, int32_t color, int32_t key, uint64_t) {
  return channel.split(color, key);
}

Result<std::tuple<int32_t, int32_t>> channel_rank_and_count(vm::CallContext& call, hal::Channel& channel) {
  const WorkScope* const scope = call.work_scope();
  const hal::Place place = HALYARD_TRY(channel.place(scope ? scope->stop_word() : nullptr));
  return std::tuple(static_cast<int32_t>(place.rank), static_cast<int32_t>(place.count));
}

Result<> command_buffer_collective(hal::CommandBuffer& commands, hal::Channel& channel, uint32_t op,
                                   uint32_t param, uint32_t send_slot, uint32_t receive_slot,
                                   hal::Buffer* send, hal::Buffer* receive, uint64_t send_offset,
                                   uint64_t send_length, uint64_t receive_offset, uint64_t receive_length,
                                   uint64_t element_count) {
  hal::CommandBuffer::Collective collective;
  collective.channel = &channel;
  collective.operation = op;
  collective.parameter = param;
  collective.send = {send, send_slot, send_offset, send_length};
  collective.receive = {receive, receive_slot, receive_offset, receive_length};
  collective.element_count = element_count;
  return commands.collective(collective);
}

}  // namespace halyard::modules::hal_functions
