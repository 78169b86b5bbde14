// A side that calls a function of a program, as vm-run does.
#pragma once

#include <memory>
#include <string>

#include "common/flags.h"
#include "side.h"

namespace halyard::tools {

// The flags must outlive the side.
std::unique_ptr<Side> program_side(const Flags& flags, std::string description);

}  // namespace halyard::tools
