// Device programs: built-in programs and those of the user. docs/hal-cts.md lists the functions that cases
// call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace halyard::cts {

struct Program {
  std::string format;  // "vmvx-bytecode-fb"
  std::vector<uint8_t> data;
  std::string origin;     // for messages: "built in", a file
  bool is_given = false;  // with --executable
};

std::vector<Program> built_in_programs();

}  // namespace halyard::cts
