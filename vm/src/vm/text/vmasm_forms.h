// The text form of each instruction (vmasm.md, section 5), generated from the TEXT rows of opcodes.inc. The
// assembler and the disassembler share it.
//
// A form is literal text with placeholders:
//   $N      operand N of the opcode (a list: its registers, separated by commas)
//   $eN     an edge: block operand N and, in parentheses, its remap, operand N+1
//   $bN     block operand N without a remap
//   $rN     result list N, if it is written inside the form and not before the '='
//   $lN     type operand N, written as the type of a list with this element type
//   $t      a type that is written but not encoded
//   $s      an optional "segments[...]" that is not encoded
//   ' '     optional blanks; '~' optional blanks that are not printed; '_' at least one blank
// Other results are written before the mnemonic: "R = vm.MNEMONIC form".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vm/format/opcodes.h"

namespace halyard::vm {

const std::string& text_form(Op op);

// Whether `rest`, the remainder of a form, is only a comma and a register list. The comma is omitted if the
// list is empty.
bool is_last_list(Op op, std::string_view rest);

// The opcode of a mnemonic without "vm."; Op::kCount if it is unknown or implicit.
Op op_by_mnemonic(std::string_view mnemonic);
// Whether only the assembler itself emits the opcode, so that text cannot contain it: block markers and
// prefixes.
bool is_implicit(std::string_view mnemonic);
std::vector<std::string_view> writable_mnemonics();

}  // namespace halyard::vm
