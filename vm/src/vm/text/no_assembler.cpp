// Replaces the assembler in small builds (HALYARD_SMALL).
#include "vm/text/assembler.h"

namespace halyard::vm {

Result<std::vector<uint8_t>> assemble(std::string_view /*text*/, const AssembleOptions& options) {
  return fail(
      Code::UNIMPLEMENTED,
      "'{}' is a module as text, but this build of Halyard lacks the assembler (HALYARD_SMALL); assemble the "
      "module with vm-as of an ordinary build",
      options.file);
}

}  // namespace halyard::vm
