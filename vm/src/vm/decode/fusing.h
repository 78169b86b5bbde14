// Fuser: puts out an instruction together with what was put out before it, where one handler does the work
// of both (decoded_ops.inc), and constants in the instructions that want them.
#pragma once

#include "vm/decode/code_builder.h"
#include "vm/decode/constants.h"
#include "vm/decode/flow.h"

namespace halyard::vm {

class Fuser {
 public:
  // All three outlive it.
  Fuser(CodeBuilder& build, const Flow& flow, const Constants& constants)
      : build_(build), flow_(flow), constants_(constants) {}

  // Whether the instruction of this step has been put out, or needs no putting out. Of plain instructions.
  bool fuse(size_t step);
  // The first word of a branch on a comparison just before, and maybe on an addition before that. False where
  // nothing was put out.
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
