// Resolves ranges.
#include "execution.h"

namespace halyard::local {

Result<std::span<uint8_t>> resolve(const halyard_range_t& range, const Execution& execution) {
  if (range.memory) return bytes_at(*range.memory, range.offset, range.length);
  const halyard_binding_t& entry = execution.table[range.slot];
  return bytes_at(*entry.memory, entry.offset + range.offset, range.length);
}

Result<std::span<uint8_t>> resolve_to_write(const halyard_range_t& range, const Execution& execution) {
  Memory& memory = memory_of(range, execution);
  if (!memory.is_writable())
    return fail(Code::PERMISSION_DENIED,
                "a command writes {} bytes to constant data of the program, in slot {} of the binding table; "
                "this device refuses that (option validate=1)",
                range.length, range.slot);
  uint8_t* const bytes = HALYARD_TRY(memory.bytes_to_write());
  return std::span<uint8_t>(bytes + offset_of(range, execution), range.length);
}

}  // namespace halyard::local
