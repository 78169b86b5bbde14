// The executable that the build creates from device_code.vmasm, embedded in this program.
#include "device_code.h"

// HAL_CTS_VMVX is the path of the file. The assembler includes it, so no tool must convert it to an array.
asm(R"(
  .pushsection .rodata
  .balign 16
  .local hal_cts_vmvx_begin
  .local hal_cts_vmvx_end
hal_cts_vmvx_begin:
  .incbin ")" HAL_CTS_VMVX R"("
hal_cts_vmvx_end:
  .popsection
)");
extern "C" const uint8_t hal_cts_vmvx_begin[] __attribute__((visibility("hidden")));
extern "C" const uint8_t hal_cts_vmvx_end[] __attribute__((visibility("hidden")));

namespace halyard::cts {

std::vector<Program> built_in_programs() {
  return {{"vmvx-bytecode-fb", {hal_cts_vmvx_begin, hal_cts_vmvx_end}, "built in"}};
}

}  // namespace halyard::cts
