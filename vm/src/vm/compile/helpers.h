// Functions that compiled code calls, by opcode: they take and give plain numbers and have no side effects.
// Null for opcodes that need none.
#pragma once

#include <array>
#include <span>

namespace halyard::vm {

std::span<const void* const> compiled_helpers();

}  // namespace halyard::vm
