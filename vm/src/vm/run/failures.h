// Failures of instructions, for the interpreter and for programs that were translated to C. Cold.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace halyard::vm {

Status division_by_zero();
Status global_out_of_range(uint32_t offset, uint32_t size, uint32_t capacity);
Status global_ref_out_of_range(uint32_t ordinal, size_t count);
// vm.fail. A number that is no failure becomes UNKNOWN.
Status program_failure(uint32_t number, std::string_view message);
// The registers of nested calls exceed `bytes`.
Status stack_exhausted(uint64_t bytes);
// An optional import that nothing provides.
Status unresolved_import(std::string_view import, std::string_view module);
// An import that waits for its results, in a call that cannot.
Status cannot_wait(std::string_view import);

}  // namespace halyard::vm
