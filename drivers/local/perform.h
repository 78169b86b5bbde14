// Runs single commands on the calling thread.
#pragma once

#include "execution.h"

namespace halyard::local {

// Whether the device supports commands of this kind.
bool has_command(uint32_t kind);
// False for barriers and debug groups, which run no code.
bool does_something(uint32_t kind);

template <typename T>
const T& as(const halyard_command_t& command) {
  return reinterpret_cast<const T&>(command);
}

// Runs a command of a supported kind, unless the work has been stopped.
Result<> perform(const halyard_command_t& command, const Execution& execution);

}  // namespace halyard::local
