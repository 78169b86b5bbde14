// The note of a driver, out of the bytes of its file. Trusts nothing in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "halyard/driver.h"

namespace halyard::hal {

// INVALID_ARGUMENT: no shared library of 64 bits, or damaged; NOT_FOUND: no note; INCOMPATIBLE: for another
// machine, or a note of a kind that came later. `path` is for messages.
Result<halyard_driver_note_t> find_driver_note(std::span<const uint8_t> file, const std::string& path);

}  // namespace halyard::hal
