// Functions that compiled code calls, by opcode. They take and return numbers and have no side effects. Null
// for opcodes that need none.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "vm/format/opcodes.h"

namespace halyard::vm {

std::span<const void* const> compiled_helpers();

// Returns one bit for each opcode that rounds to an integer: whether it leaves a signaling NaN unchanged.
// This depends on the build of this library and on the C library.
uint32_t kept_nans();
constexpr bool keeps_nan(uint32_t kept, Op op) {
  switch (op) {
    case Op::ceil_f32:
      return kept & 1;
    case Op::ceil_f64:
      return kept & 2;
    case Op::floor_f32:
      return kept & 4;
    case Op::floor_f64:
      return kept & 8;
    default:
      return false;
  }
}

}  // namespace halyard::vm
