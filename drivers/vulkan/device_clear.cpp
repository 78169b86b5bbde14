// Clears memory that the host cannot see, so that an allocation shows no data of other owners [R78]. The
// commands run on the last queue, which on many devices only transfers, and wait for no work.
#include "command_encoder.h"
#include "device.h"

namespace halyard::vulkan {

Result<> Device::clear(const Block& block) {
  Queue& queue = queues_.back();
  std::unique_ptr<CommandEncoder> encoder =
      HALYARD_KIT_TRY(encoders(queue).take([&] { return CommandEncoder::create(*this, queue); }));
  HALYARD_KIT_TRY(encoder->begin(true));
  HALYARD_KIT_TRY(encoder->fill({&block, 0, block.size}, 0, sizeof(uint32_t)));
  encoder->barrier();
  HALYARD_KIT_TRY(encoder->end());
  HALYARD_KIT_TRY(queue.run_now(encoder->commands()));
  encoders(queue).give(std::move(encoder));
  return {};
}

}  // namespace halyard::vulkan
