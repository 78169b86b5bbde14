// Fuser: emits an instruction fused with earlier ones if one handler can do the work of both
// (decoded_ops.inc), and uses constants as immediates.
#pragma once

#include "vm/decode/code_builder.h"
#include "vm/decode/constants.h"
#include "vm/decode/flow.h"

namespace halyard::vm {

class Fuser {
 public:
  // All three arguments must outlive the fuser.
  Fuser(CodeBuilder& build, const Flow& flow, const Constants& constants)
      : build_(build), flow_(flow), constants_(constants) {}

  // Tries to fuse a plain instruction. Returns true if the instruction is emitted or needs no code.
  bool fuse(size_t step);
  // Emits the first word of a branch fused with the comparison before it, and possibly with the addition
  // before that. Returns false if nothing was emitted.
  bool fuse_condition(size_t step, uint16_t condition);

 private:
  bool fuse_immediate(const Instruction& instruction);
  bool fuse_index(size_t step, const Instruction& instruction);
  bool fuse_arithmetic(size_t step, const Instruction& instruction);
  bool fuse_loop(const CodeBuilder::Fusible& addition, Op op, Word compare);
  void fuse_loop_end(DecodedOp loop, uint32_t word);
  std::optional<int16_t> small_constant(const Instruction& instruction, size_t operand) const;
  bool last_read(size_t step, uint16_t slot, bool wide) const;

  CodeBuilder& build_;
  const Flow& flow_;
  const Constants& constants_;
};

}  // namespace halyard::vm
