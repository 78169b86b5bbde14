// Records the commands of a list again, one at a time, into another command buffer.
#pragma once

#include <span>

#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/command/command_list.h"

namespace halyard::hal {

// Maps the numbers of a list to objects.
struct Rerecording {
  CommandBuffer& commands;
  std::span<const Ref<Buffer>> buffers;
  std::span<const Ref<Executable>> executables;  // only the needed ones are set
  std::span<Channel* const> channels;            // if empty, collectives are UNIMPLEMENTED

  // Fails like the recording calls of CommandBuffer.
  Result<> record(const Command& command) const;
};

}  // namespace halyard::hal
