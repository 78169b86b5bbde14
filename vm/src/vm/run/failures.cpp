#include "vm/run/failures.h"

#include <string>

namespace halyard::vm {

Status division_by_zero() { return Status(Code::INVALID_ARGUMENT, "integer division by zero"); }

Status global_out_of_range(uint32_t offset, uint32_t size, uint32_t capacity) {
  return Status(
      Code::OUT_OF_RANGE,
      fmt::format("{} bytes at offset {} are not within the {} bytes of globals", size, offset, capacity));
}

Status global_ref_out_of_range(uint32_t ordinal, size_t count) {
  return Status(Code::OUT_OF_RANGE,
                fmt::format("there is no ref global {}; the module has {}", ordinal, count));
}

Status program_failure(uint32_t number, std::string_view message) {
  const Code code = failure_code(number & 31);
  if (code != Code::UNKNOWN || number == static_cast<uint32_t>(Code::UNKNOWN))
    return Status(code, std::string(message));
  return Status(code, fmt::format("{} (the program failed with {}, which is not a status)", message, number));
}

Status stack_exhausted(uint64_t bytes) {
  return Status(Code::RESOURCE_EXHAUSTED,
                fmt::format("calls are nested too deep for a stack of {} bytes", bytes));
}

Status unresolved_import(std::string_view import, std::string_view module) {
  return Status(Code::NOT_FOUND,
                fmt::format("optional import '{}' of module '{}' is not resolved", import, module));
}

Status cannot_wait(std::string_view import) {
  return Status(
      Code::UNIMPLEMENTED,
      fmt::format("import '{}' is not done, but this call cannot wait for its results; call it with "
                  "call.yieldable",
                  import));
}

}  // namespace halyard::vm
