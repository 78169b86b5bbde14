// Programs for devices: those that Halyard knows itself, and those that the user gives. docs/hal-cts.md says
// which functions the cases call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halyard::cts {

struct Program {
  std::string format;  // "vmvx-bytecode-fb"
  std::vector<uint8_t> data;
  std::string origin;  // for messages: "built in", a file
};

std::vector<Program> built_in_programs();

}  // namespace halyard::cts
