// Generates a small program for each opcode: its operands are arguments, and it returns everything that the
// opcode may change. It uses the opcode table, so a new row is tested without a new test.
#pragma once

#include <optional>
#include <vector>

#include "function_generator.h"

namespace halyard::vm::test {

// How the operands of the instruction are chosen.
struct EdgeShape {
  bool aliased = false;    // operands of one kind share a register
  uint32_t moves = 0;      // bit i: the i-th ref of the instruction has the MOVE bit
  uint32_t list_size = 3;  // of register lists, and of the cases of a table
  uint32_t ordinal = 0;    // of a type, ref global, constant or callee; or byte offset of a global
  uint64_t immediate = 0;
};

// A field of the instruction, in the bytes of function 0.
struct EdgeField {
  uint32_t offset;
  OperandKind kind;
  Bank bank;  // of a register: its bank for the verifier; none for other fields
};

struct EdgeProgram {
  Program program;              // without calls
  std::vector<Bank> arguments;  // how each argument of "main" is used
  uint32_t ref_fields = 0;      // number of ref fields of the instruction
  uint32_t start = 0;           // of the instruction in function 0
  uint32_t end = 0;
  std::vector<EdgeField> fields;
};

// nullopt for markers and prefixes, which are not instructions, and for shapes that the opcode cannot have.
std::optional<EdgeProgram> edge_program(Op op, uint32_t version, const EdgeShape& shape);

// The number of values of `ordinal` that the opcode distinguishes.
uint32_t ordinal_count(Op op);

}  // namespace halyard::vm::test
