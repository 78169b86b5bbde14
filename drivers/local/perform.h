// Single commands, each on the calling thread.
#pragma once

#include "execution.h"

namespace halyard::local {

// Whether the device has commands of that kind.
bool has_command(uint32_t kind);
// Whether there is anything to do for such commands: barriers only part others, and groups are for people.
bool does_something(uint32_t kind);

template <typename T>
const T& as(const halyard_command_t& command) {
  return reinterpret_cast<const T&>(command);
}

// A command of a kind that the device has. Begins nothing where the work is to stop.
Result<> perform(const halyard_command_t& command, const Execution& execution);

}  // namespace halyard::local
