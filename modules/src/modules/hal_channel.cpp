// hal.channel.*: collectives between processes, which no driver offers so far. Specified by hal-module.md,
// "Channel". Functions with a channel argument always fail its check: no channel exists.
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

std::unexpected<Status> not_implemented() {
  return fail(Code::UNIMPLEMENTED, "collective operations are not offered; compile the program without them");
}

}  // namespace

Result<Ref<Channel>> channel_create(hal::Device& device, uint64_t, uint64_t, vm::Buffer*, vm::Buffer*,
                                    int32_t, int32_t) {
  return fail(Code::UNIMPLEMENTED,
              "device '{}' offers no collective operations; compile the program without them", device.uri());
}

Result<Ref<Channel>> channel_split(Channel&, int32_t, int32_t, uint64_t) { return not_implemented(); }
Result<std::tuple<int32_t, int32_t>> channel_rank_and_count(Channel&) { return not_implemented(); }

Result<> command_buffer_collective(hal::CommandBuffer&, Channel&, uint32_t, uint32_t, uint32_t, uint32_t,
                                   hal::Buffer*, hal::Buffer*, uint64_t, uint64_t, uint64_t, uint64_t,
                                   uint64_t) {
  return not_implemented();
}

}  // namespace halyard::modules::hal_functions
