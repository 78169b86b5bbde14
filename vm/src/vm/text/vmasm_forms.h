// How each instruction is written in text, vmasm.md section 5, as data: one form per opcode, read by the
// assembler and by whoever prints instructions.
//
// A form is literal text with places:
//   $N      operand N of the opcode's table entry (a list: registers with commas)
//   $eN     an edge: block operand N and, in parentheses, its remap N+1
//   $bN     block operand N alone
//   $rN     result list N where it is written inside the form instead of before the '='
//   $lN     type operand N, written as the list type whose element it is
//   $t      a type that is written but not encoded
//   $s      optional "segments[...]" that is not encoded
//   ' '     blanks that may be left out; '~' the same, and they are not printed; '_' a blank that may not
// Where a form does not say otherwise, results stand before the mnemonic: "R = vm.MNEMONIC form".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vm/format/opcodes.h"

namespace halyard::vm {

const std::string& text_form(Op op);

// Whether `rest` of a form is a comma and a list of registers, and nothing more. Where that list is empty,
// the comma is not written.
bool is_last_list(Op op, std::string_view rest);

// The opcode of a mnemonic without "vm."; Op::kCount where there is none that can be written (markers,
// prefixes).
Op op_by_mnemonic(std::string_view mnemonic);
std::vector<std::string_view> writable_mnemonics();

}  // namespace halyard::vm
