// One small program for each opcode: its operands are arguments, and everything that it may have changed is
// returned. By the opcode table, so a new row is tested without a new test.
#pragma once

#include <optional>
#include <vector>

#include "function_generator.h"

namespace halyard::vm::test {

// How the operands of the instruction are chosen.
struct EdgeShape {
  bool aliased = false;    // operands of one kind are one register
  uint32_t moves = 0;      // bit i: the i-th ref of the instruction has the MOVE bit
  uint32_t list_size = 3;  // of lists of registers, and the cases of a table
  uint32_t ordinal = 0;    // of a type, ref global, constant or callee; byte offset of a global
  uint64_t immediate = 0;
};

// A field of the instruction, in the bytes of function 0.
struct EdgeField {
  uint32_t offset;
  OperandKind kind;
  Bank bank;  // of a register: what the verifier holds it against; none for other fields
};

struct EdgeProgram {
  Program program;              // without calls
  std::vector<Bank> arguments;  // what each argument of "main" is used as
  uint32_t ref_fields = 0;      // of the instruction
  uint32_t start = 0;           // of the instruction in function 0
  uint32_t end = 0;
  std::vector<EdgeField> fields;
};

// Nothing for markers and prefixes, which are no instructions, and for shapes that the opcode cannot have.
std::optional<EdgeProgram> edge_program(Op op, uint32_t version, const EdgeShape& shape);

// How many values of `ordinal` mean something to the opcode.
uint32_t ordinal_count(Op op);

}  // namespace halyard::vm::test
