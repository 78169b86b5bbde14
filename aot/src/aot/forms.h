// How each opcode becomes C: the rows of forms.inc by opcode.
#pragma once

#include <array>
#include <string_view>

#include "vm/format/opcodes.h"

namespace halyard::aot {

struct Form {
  enum class Kind : uint8_t { value, statement, guarded, attempt, own };
  // What FunctionWriter writes without a text.
  enum class Own : uint8_t {
    nothing,
    jump,
    choose,
    jump_by_table,
    call,
    leave,
    fail,
    resolved,
    pick,
    pick_ref,
    discard,
  };

  Kind kind = Kind::own;
  std::string_view text;  // the effect, or the call
  std::string_view condition;
  std::string_view failure;
  Own own = Own::nothing;
};

const Form& form_of(vm::Op op);

}  // namespace halyard::aot
