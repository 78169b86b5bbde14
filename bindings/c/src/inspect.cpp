// Inspects modules through the C ABI: returns assembly text or a description.
#include "handles.h"
#include "inspection.h"
#include "vm/text/disassembler.h"

using namespace halyard;
using namespace halyard::c;

namespace {

Ref<Bytes> borrowed(const void* data, size_t size) {
  return Bytes::borrow({static_cast<const uint8_t*>(data), size}, {});
}

}  // namespace

halyard_status_t halyard_disassemble(const void* data, size_t size,
                                     const halyard_disassemble_options_t* options, char** out,
                                     size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const halyard_disassemble_options_t known = HALYARD_TRY(known_fields(options));
    const vm::DisassembleOptions disassemble{.offsets = (known.flags & HALYARD_DISASSEMBLE_OFFSETS) != 0};
    HALYARD_TRY(check_flags(known.flags, HALYARD_DISASSEMBLE_OFFSETS, "HALYARD_DISASSEMBLE_*"));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    give_text(HALYARD_TRY(vm::disassemble(borrowed(data, size), disassemble)), out, out_size);
    return {};
  });
}

halyard_status_t halyard_module_describe(const void* data, size_t size, uint32_t form, char** out,
                                         size_t* out_size) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    HALYARD_TRY(check_form(form));
    HALYARD_TRY(check_array(data, size, "bytes", "data"));
    const Inspection inspection = HALYARD_TRY(inspect(borrowed(data, size)));
    const std::string text = form == HALYARD_DESCRIBE_TEXT ? inspection_text(inspection)
                                                           : HALYARD_TRY(inspection_json(inspection));
    give_text(text, out, out_size);
    return {};
  });
}
