// Replaces the assembler in small builds (HALYARD_SMALL).
#include "vm/text/assembler.h"

namespace halyard::vm {

Result<std::vector<uint8_t>> assemble(std::string_view /*text*/, const AssembleOptions& options) {
  return fail(Code::UNIMPLEMENTED,
              "'{}' is a module as text, and this Halyard was built without the assembler (HALYARD_SMALL); "
              "assemble it "
              "elsewhere with vm-as",
              options.file);
}

}  // namespace halyard::vm
