// Records commands of a list again, into another command buffer, one at a time.
#pragma once

#include <span>

#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/command/command_list.h"

namespace halyard::hal {

// The objects for the numbers of a list.
struct Rerecording {
  CommandBuffer& commands;
  std::span<const Ref<Buffer>> buffers;
  std::span<const Ref<Executable>> executables;  // only the needed ones are set
  std::span<Channel* const> channels;            // none: collectives are UNIMPLEMENTED

  // As the recording calls of CommandBuffer.
  Result<> record(const Command& command) const;
};

}  // namespace halyard::hal
