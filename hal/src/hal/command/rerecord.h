// Records commands of a list again, into another command buffer: one by one, or only some of them.
#pragma once

#include <span>

#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/command/command_list.h"

namespace halyard::hal {

// What the numbers of a list stand for now.
struct Rerecording {
  CommandBuffer& commands;
  std::span<const Ref<Buffer>> buffers;
  std::span<const Ref<Executable>> executables;  // those that are needed are there

  // As the recording calls of CommandBuffer.
  Result<> record(const Command& command) const;
};

}  // namespace halyard::hal
