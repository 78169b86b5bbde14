// Joiner: puts out an instruction together with what was put out before it, where one handler does the work
// of both (inner_ops.inc), and constants in the instructions that want them.
#pragma once

#include "vm/decode/code_builder.h"
#include "vm/decode/constants.h"
#include "vm/decode/flow.h"

namespace halyard::vm {

class Joiner {
 public:
  // Looks at what it is given whenever it joins.
  Joiner(CodeBuilder& build, const Flow& flow, const Constants& constants)
      : build_(build), flow_(flow), constants_(constants) {}

  // Whether the instruction of this step has been put out, or needs no putting out. Of plain instructions.
  bool join(size_t step);
  // The first word of a branch on a comparison just before, and maybe on an addition before that. False where
  // nothing was put out.
  bool join_condition(size_t step, uint16_t condition);

 private:
  bool join_immediate(const Instruction& instruction);
  bool join_index(size_t step, const Instruction& instruction);
  bool join_chain(size_t step, const Instruction& instruction);
  bool join_loop(const CodeBuilder::Joinable& addition, Op op, Word compare);
  void join_last(InnerOp loop, uint32_t word);
  std::optional<int16_t> small_constant(const Instruction& instruction, size_t operand) const;
  bool last_read(size_t step, uint16_t slot, bool wide) const;

  CodeBuilder& build_;
  const Flow& flow_;
  const Constants& constants_;
};

}  // namespace halyard::vm
